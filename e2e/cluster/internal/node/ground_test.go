package node

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for path, text := range files {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestEachHierarchyGetsAGroupAndProcessorsAreInherited(t *testing.T) {
	root := tree(t, map[string]string{"cpuset/cpuset.cpus": "0-1\n", "cpuset/cpuset.mems": "0\n", "memory/tasks": ""})
	if err := os.Symlink("memory", filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	hierarchies, err := Hierarchies(root)
	if err != nil || !slices.Equal(hierarchies, []string{root + "/cpuset", root + "/memory"}) {
		t.Fatalf("got %v, %v", hierarchies, err)
	}
	if err := makeCgroups(root, "second"); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(root, "cpuset/second/cpuset.cpus")); err != nil || string(text) != "0-1\n" {
		t.Fatalf("got %q, %v", text, err)
	}
	if _, err := os.Stat(filepath.Join(root, "memory/second")); err != nil {
		t.Fatal(err)
	}
}

func TestAUnifiedHierarchyPassesItsControllersOn(t *testing.T) {
	root := tree(t, map[string]string{"cgroup.controllers": "cpu memory\n", "cgroup.subtree_control": ""})
	if err := makeCgroups(root, "second"); err != nil {
		t.Fatal(err)
	}
	if text, _ := os.ReadFile(filepath.Join(root, "cgroup.subtree_control")); string(text) != "+cpu +memory" {
		t.Fatalf("got %q", text)
	}
}

func TestMissingControllersAreNamed(t *testing.T) {
	root := tree(t, map[string]string{"cpu,cpuacct/tasks": "", "cpuset/tasks": "", "memory/tasks": ""})
	if err := tryControllers(root); err == nil || !strings.HasSuffix(err.Error(), "no controller pids") {
		t.Fatalf("got %v", err)
	}
	unified := tree(t, map[string]string{"cgroup.controllers": "cpu cpuset memory pids\n"})
	if err := tryControllers(unified); err != nil {
		t.Fatal(err)
	}
}

func TestAMissingKernelParameterNamesItsModule(t *testing.T) {
	missing := []setting{{filepath.Join(t.TempDir(), "none", "x"), "1", "the kernel module br_netfilter"}}
	err := applyNetwork(func(command) error { return nil }, nil, missing)
	if err == nil || !strings.Contains(err.Error(), "br_netfilter") {
		t.Fatalf("got %v", err)
	}
}
