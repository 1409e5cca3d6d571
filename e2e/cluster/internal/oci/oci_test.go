package oci

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func folder(t *testing.T, when time.Time) string {
	t.Helper()
	root := t.TempDir()
	file := filepath.Join(root, "bin", "tool")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("content"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("tool", filepath.Join(root, "bin", "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(file, when, when); err != nil {
		t.Fatal(err)
	}
	return root
}

func write(t *testing.T, root string) (archive, digest string) {
	t.Helper()
	archive = filepath.Join(t.TempDir(), "image.tar")
	digest, err := Write(archive, root, Image{Reference: "localhost/x:1", User: "65532"})
	if err != nil {
		t.Fatal(err)
	}
	return archive, digest
}

func TestTheSameFolderGivesTheSameDigestAtAnyTime(t *testing.T) {
	_, first := write(t, folder(t, time.Unix(1, 0)))
	_, second := write(t, folder(t, time.Unix(2, 0)))
	if first != second {
		t.Fatalf("%s and %s", first, second)
	}
}

func TestEveryBlobIsNamedByItsDigest(t *testing.T) {
	archive, digest := write(t, folder(t, time.Unix(1, 0)))
	file, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	blobs := map[string]bool{}
	reader := tar.NewReader(file)
	for {
		header, err := reader.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		name, isBlob := strings.CutPrefix(header.Name, "blobs/sha256/")
		if !isBlob {
			continue
		}
		sum := sha256.New()
		if _, err := io.Copy(sum, reader); err != nil {
			t.Fatal(err)
		}
		if hex.EncodeToString(sum.Sum(nil)) != name {
			t.Errorf("%s holds other content", name)
		}
		blobs["sha256:"+name] = true
	}
	if len(blobs) != 3 || !blobs[digest] {
		t.Fatalf("the manifest %s is not among %v", digest, blobs)
	}
}

func TestAFailedWriteLeavesTheOldArchive(t *testing.T) {
	archive := filepath.Join(t.TempDir(), "image.tar")
	if err := os.WriteFile(archive, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Write(archive, filepath.Join(t.TempDir(), "missing"), Image{Reference: "x:1"}); err == nil {
		t.Fatal("a missing folder was accepted")
	}
	entries, err := os.ReadDir(filepath.Dir(archive))
	if err != nil || len(entries) != 1 {
		t.Fatalf("left behind: %v, %v", entries, err)
	}
}
