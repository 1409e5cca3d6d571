// Package oci writes container images of one layer from a folder.
package oci

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

const media = "application/vnd.oci.image."

// Image says what to make of a folder.
type Image struct {
	// Reference is the image's name with a tag.
	Reference string
	// User the image runs as, a number.
	User string
	// Entrypoint is the command, empty for an image that is only read.
	Entrypoint []string
}

type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int64             `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type blob struct {
	descriptor
	data []byte
}

func blobOf(kind string, value any) (blob, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return blob{}, err
	}
	sum := sha256.Sum256(data)
	return blob{descriptor{MediaType: media + kind, Digest: "sha256:" + hex.EncodeToString(sum[:]), Size: int64(len(data))}, data}, nil
}

// Write makes an image archive and returns the digest of its manifest. The same folder gives
// the same digest: owners and times are fixed. An existing archive is replaced when the new
// one is complete.
func Write(archive, folder string, image Image) (string, error) {
	layer, err := os.CreateTemp(filepath.Dir(archive), ".layer-*")
	if err != nil {
		return "", err
	}
	defer func() { _ = layer.Close(); _ = os.Remove(layer.Name()) }()
	content, err := writeLayer(layer, folder)
	if err != nil {
		return "", fmt.Errorf("layer of %s: %w", folder, err)
	}
	config, err := blobOf("config.v1+json", configOf(image, content.Digest))
	if err != nil {
		return "", err
	}
	manifest, err := blobOf("manifest.v1+json", map[string]any{
		"schemaVersion": 2,
		"mediaType":     media + "manifest.v1+json",
		"config":        config.descriptor,
		"layers":        []descriptor{content},
	})
	if err != nil {
		return "", err
	}
	manifest.Annotations = map[string]string{"io.containerd.image.name": image.Reference}
	index, err := blobOf("index.v1+json", map[string]any{
		"schemaVersion": 2,
		"mediaType":     media + "index.v1+json",
		"manifests":     []descriptor{manifest.descriptor},
	})
	if err != nil {
		return "", err
	}
	return manifest.Digest, assemble(archive, layer, content, index.data, config, manifest)
}

func configOf(image Image, layer string) map[string]any {
	run := map[string]any{"User": image.User, "Env": []string{"PATH=/usr/local/bin:/usr/bin:/bin"}}
	if len(image.Entrypoint) > 0 {
		run["Entrypoint"] = image.Entrypoint
	}
	return map[string]any{
		"architecture": runtime.GOARCH,
		"os":           "linux",
		"config":       run,
		"rootfs":       map[string]any{"type": "layers", "diff_ids": []string{layer}},
	}
}

// writeLayer packs the folder in the order of its names.
func writeLayer(out io.Writer, folder string) (descriptor, error) {
	sum := sha256.New()
	count := new(counter)
	pack := tar.NewWriter(io.MultiWriter(out, sum, count))
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == folder {
			return err
		}
		return addEntry(pack, folder, path, entry)
	})
	if err != nil {
		return descriptor{}, err
	}
	if err := pack.Close(); err != nil {
		return descriptor{}, err
	}
	return descriptor{MediaType: media + "layer.v1.tar", Digest: "sha256:" + hex.EncodeToString(sum.Sum(nil)), Size: int64(*count)}, nil
}

type counter int64

func (c *counter) Write(data []byte) (int, error) {
	*c += counter(len(data))
	return len(data), nil
}

func addEntry(pack *tar.Writer, folder, path string, entry fs.DirEntry) error {
	info, err := entry.Info()
	if err != nil {
		return err
	}
	target := ""
	if info.Mode()&fs.ModeSymlink != 0 {
		if target, err = os.Readlink(path); err != nil {
			return err
		}
	}
	header, err := tar.FileInfoHeader(info, target)
	if err != nil {
		return err
	}
	name, err := filepath.Rel(folder, path)
	if err != nil {
		return err
	}
	header.Name = name
	if info.IsDir() {
		header.Name += "/"
	}
	header.Uid, header.Gid, header.Uname, header.Gname = 0, 0, "", ""
	header.ModTime, header.AccessTime, header.ChangeTime = time.Unix(0, 0), time.Time{}, time.Time{}
	header.Format = tar.FormatPAX
	if err := pack.WriteHeader(header); err != nil || !info.Mode().IsRegular() {
		return err
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	_, err = io.Copy(pack, file)
	return err
}

func assemble(archive string, layer io.ReadSeeker, content descriptor, index []byte, blobs ...blob) error {
	out, err := os.CreateTemp(filepath.Dir(archive), ".image-*")
	if err != nil {
		return err
	}
	defer func() { _ = out.Close(); _ = os.Remove(out.Name()) }()
	pack := tar.NewWriter(out)
	put := func(name string, size int64, data io.Reader) error {
		if err := pack.WriteHeader(&tar.Header{Name: name, Size: size, Mode: 0o644, Format: tar.FormatPAX}); err != nil {
			return err
		}
		_, err := io.Copy(pack, data)
		return err
	}
	layout := `{"imageLayoutVersion":"1.0.0"}`
	if err := put("oci-layout", int64(len(layout)), strings.NewReader(layout)); err != nil {
		return err
	}
	if err := put("index.json", int64(len(index)), strings.NewReader(string(index))); err != nil {
		return err
	}
	for _, b := range blobs {
		if err := put(blobPath(b.descriptor), b.Size, strings.NewReader(string(b.data))); err != nil {
			return err
		}
	}
	if _, err := layer.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if err := put(blobPath(content), content.Size, layer); err != nil {
		return err
	}
	if err := pack.Close(); err != nil {
		return err
	}
	return os.Rename(out.Name(), archive)
}

func blobPath(d descriptor) string {
	return "blobs/sha256/" + strings.TrimPrefix(d.Digest, "sha256:")
}
