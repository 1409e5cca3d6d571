package build

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"agentrun.dev/e2e/cluster/internal/settings"
)

func TestOnlyPackagesThatAreNotInstalledAreMissing(t *testing.T) {
	listing := "a install ok installed\nb deinstall ok config-files\nc hold ok installed\n"
	if missing := notInstalled([]string{"a", "b", "c", "d"}, listing); !slices.Equal(missing, []string{"b", "d"}) {
		t.Fatalf("got %v", missing)
	}
}

func TestHostsAndCredentialsStayOutOfMessages(t *testing.T) {
	got := withoutAddresses("Get https://me:secret@proxy.example/x/@v/list: refused")
	if strings.Contains(got, "secret") || strings.Contains(got, "example") || !strings.Contains(got, "refused") {
		t.Fatalf("got %q", got)
	}
}

func compilerIn(t *testing.T) *compiler {
	t.Helper()
	sources := t.TempDir()
	folder := filepath.Join(sources, "programs", "x")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "main.go"), []byte("package main"), 0o644); err != nil {
		t.Fatal(err)
	}
	return &compiler{sources: sources, toolchain: "go1", modules: "m"}
}

func keyOf(t *testing.T, c *compiler, p program) string {
	t.Helper()
	key, err := c.key(p)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func TestAKeyChangesWithEveryInputAndNothingElse(t *testing.T) {
	c := compilerIn(t)
	p := program{name: "x", path: "./programs/x", tags: "a", ldflags: "b"}
	first := keyOf(t, c, p)
	if keyOf(t, c, p) != first {
		t.Fatal("the key of the same inputs differs")
	}
	seen := []string{first}
	differ := func(what string, c *compiler, p program) {
		key := keyOf(t, c, p)
		if slices.Contains(seen, key) {
			t.Errorf("the key does not depend on %s", what)
		}
		seen = append(seen, key)
	}
	p.tags = "c"
	differ("tags", c, p)
	p.ldflags = "d"
	differ("ldflags", c, p)
	c.toolchain = "go2"
	differ("the toolchain", c, p)
	c.modules = "n"
	differ("the modules", c, p)
	if err := os.WriteFile(filepath.Join(c.sources, "programs", "x", "main.go"), []byte("package other"), 0o644); err != nil {
		t.Fatal(err)
	}
	differ("the sources", c, p)
}

func TestAFileIsFreshOnlyWithItsKey(t *testing.T) {
	s := settings.Settings{Cache: t.TempDir()}
	made := filepath.Join(s.Cache, "made")
	if err := os.WriteFile(made, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if isFresh(s, made, "k") {
		t.Error("fresh without a stamp")
	}
	if err := stamp(s, made, "k"); err != nil {
		t.Fatal(err)
	}
	if !isFresh(s, made, "k") || isFresh(s, made, "l") {
		t.Error("the stamp is not compared with the key")
	}
	if err := os.Remove(made); err != nil {
		t.Fatal(err)
	}
	if isFresh(s, made, "k") {
		t.Error("fresh although it is gone")
	}
}

func TestServersReportThePinnedVersion(t *testing.T) {
	version, err := pinnedKubernetes("require (\n\tk8s.io/kubectl v0.37.2\n\tk8s.io/kubernetes v1.37.2\n)\n")
	if err != nil || version != "v1.37.2" {
		t.Fatalf("got %q, %v", version, err)
	}
	flags := versionFlags(version)
	for _, want := range []string{".gitVersion=v1.37.2 ", ".gitMajor=1 ", ".gitMinor=37 "} {
		if !strings.Contains(flags, want) {
			t.Errorf("%q lacks %q", flags, want)
		}
	}
	if _, err := pinnedKubernetes("\tk8s.io/kubernetes v1.38.0-alpha.1\n"); err == nil {
		t.Error("an unreleased version was taken")
	}
}

func TestProgressTellsPackagesFromComplaints(t *testing.T) {
	var said []string
	p := newProgress(time.Now(), "x", func(format string, _ ...any) { said = append(said, format) })
	for _, piece := range []string{"go: downloading a v1\nk8s.io/a", "pi/core\n# k8s.io/api\nx.go:1:2: wrong", " type\n"} {
		if _, err := p.Write([]byte(piece)); err != nil {
			t.Fatal(err)
		}
	}
	if p.compiled != 1 || p.last != "k8s.io/api/core" {
		t.Errorf("%d packages, last %q", p.compiled, p.last)
	}
	if got := p.complaints(); got != "# k8s.io/api\nx.go:1:2: wrong type" {
		t.Errorf("complaints are %q", got)
	}
	if p.report(); len(said) != 1 {
		t.Errorf("said %v", said)
	}
}
