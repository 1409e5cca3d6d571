package build

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"agentrun.dev/e2e/cluster/internal/settings"
)

// program is one binary to compile.
type program struct {
	name string
	// path of its main package: a folder here begins with "./", others are pinned by go.mod.
	path string
	// links are further names the binary is called by.
	links   []string
	tags    string
	ldflags string
}

// programs are what a cluster consists of. kubernetes is the version that servers report;
// without it they call themselves v0.0.0, which charts with a version range refuse.
func programs(kubernetes string) []program {
	const strip = "-s -w"
	return []program{
		{
			name: "clusterbox", path: "./programs/clusterbox",
			links: []string{
				"containerd", "ctr", "etcd", "image-loader", "kube-apiserver", "kube-controller-manager",
				"kube-proxy", "kube-scheduler", "kubectl", "kubelet",
			},
			// Snapshotters that need C libraries.
			tags:    "no_btrfs,no_zfs,no_devmapper",
			ldflags: strip + versionFlags(kubernetes),
		},
		{name: "pause", path: "./programs/pause", ldflags: strip},
		{name: "containerd-shim-runc-v2", path: "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2", ldflags: strip},
		{name: "kube-network-policies", path: "sigs.k8s.io/kube-network-policies/cmd", ldflags: strip},
		{name: "local-path-provisioner", path: "github.com/rancher/local-path-provisioner", ldflags: strip},
		{name: "helm", path: "helm.sh/helm/v4/cmd/helm", ldflags: strip},
	}
}

func versionFlags(kubernetes string) string {
	major, rest, _ := strings.Cut(strings.TrimPrefix(kubernetes, "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	const variable = " -X k8s.io/component-base/version."
	return variable + "gitVersion=" + kubernetes + variable + "gitMajor=" + major +
		variable + "gitMinor=" + minor + variable + "gitTreeState=clean"
}

type compiler struct {
	settings settings.Settings
	sources  string
	say      reporter
	// toolchain and modules are what every binary depends on.
	toolchain string
	modules   string
	// kubernetes is the version pinned in go.mod.
	kubernetes string
}

func newCompiler(ctx context.Context, s settings.Settings, sources string, say reporter) (*compiler, error) {
	if _, err := exec.LookPath("go"); err != nil {
		return nil, errGo
	}
	version := exec.CommandContext(ctx, "go", "env", "GOVERSION", "GOOS", "GOARCH")
	version.Dir = sources
	toolchain, err := version.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("go does not accept go.mod: %w\n%s", err, withoutAddresses(string(toolchain)))
	}
	var modules strings.Builder
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(sources, name))
		if err != nil {
			return nil, err
		}
		modules.Write(text)
	}
	pinned, err := pinnedKubernetes(modules.String())
	if err != nil {
		return nil, err
	}
	return &compiler{s, sources, say, string(toolchain), modules.String(), pinned}, nil
}

var kubernetesLine = regexp.MustCompile(`(?m)^\s*k8s\.io/kubernetes (v1\.\d+\.\d+)$`)

func pinnedKubernetes(mod string) (string, error) {
	found := kubernetesLine.FindStringSubmatch(mod)
	if found == nil {
		return "", fmt.Errorf("go.mod requires no released version of k8s.io/kubernetes")
	}
	return found[1], nil
}

func (c *compiler) compile(ctx context.Context, p program) error {
	key, err := c.key(p)
	if err != nil {
		return err
	}
	binary := c.settings.Program(p.name)
	if !isFresh(c.settings, binary, key) {
		if err := c.run(ctx, p, binary); err != nil {
			return err
		}
		if err := stamp(c.settings, binary, key); err != nil {
			return err
		}
	}
	return link(filepath.Dir(binary), p)
}

// key changes with anything that can change the binary.
func (c *compiler) key(p program) (string, error) {
	sum := sha256.New()
	for _, text := range []string{c.toolchain, c.modules, p.path, p.tags, p.ldflags} {
		_, _ = fmt.Fprintf(sum, "%d\n%s", len(text), text)
	}
	if !strings.HasPrefix(p.path, "./") {
		return hex.EncodeToString(sum.Sum(nil)), nil
	}
	err := filepath.WalkDir(filepath.Join(c.sources, p.path), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		_, _ = fmt.Fprintf(sum, "%s\n%d\n%s", entry.Name(), len(text), text)
		return err
	})
	return hex.EncodeToString(sum.Sum(nil)), err
}

func (c *compiler) run(ctx context.Context, p program, binary string) error {
	if err := os.MkdirAll(filepath.Dir(binary), 0o755); err != nil {
		return err
	}
	next := binary + ".new"
	defer func() { _ = os.Remove(next) }()
	began := time.Now()
	c.say("compiling %s", p.name)
	command := exec.CommandContext(ctx, "go", "build", "-v", "-trimpath", "-o", next, "-tags", p.tags, "-ldflags", p.ldflags, p.path)
	command.Dir = c.sources
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=readonly -buildvcs=false")
	watch := newProgress(began, p.name, c.say)
	command.Stdout, command.Stderr = watch, watch
	stop := watch.everyFifteenSeconds()
	err := command.Run()
	stop()
	if err != nil {
		return fmt.Errorf("%s does not compile: %w\n%s", p.name, err, withoutAddresses(watch.complaints()))
	}
	c.say("%s took %.0f s", p.name, time.Since(began).Seconds())
	return os.Rename(next, binary)
}

func link(folder string, p program) error {
	for _, name := range p.links {
		path := filepath.Join(folder, name)
		if target, err := os.Readlink(path); err == nil && target == p.name {
			continue
		}
		_ = os.Remove(path)
		if err := os.Symlink(p.name, path); err != nil {
			return err
		}
	}
	return nil
}
