package node

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"text/template"

	"agentrun.dev/e2e/cluster/internal/settings"
)

//go:embed files
var files embed.FS

// values are what the embedded files may ask for.
type values struct {
	State, PKI, Cgroup, Runc         string
	Node, NodeIP, PodCIDR, PodSubnet string
	Queue                            int
}

func valuesOf(s settings.Settings, runc string) values {
	return values{
		State: s.State, PKI: s.Path("pki"), Cgroup: s.Name(), Runc: runc,
		Node: nodeName, NodeIP: nodeIP, PodCIDR: podCIDR, PodSubnet: podSubnet,
		Queue: policyQueue,
	}
}

// render fills in all embedded files; the keys are their paths below the state folder.
func render(v values) (map[string]string, error) {
	rendered := map[string]string{}
	root, err := fs.Sub(files, "files")
	if err != nil {
		return nil, err
	}
	err = fs.WalkDir(root, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(root, path)
		if err != nil {
			return err
		}
		form, err := template.New(path).Parse(string(text))
		if err != nil {
			return err
		}
		var out bytes.Buffer
		if err := form.Execute(&out, v); err != nil {
			return err
		}
		rendered[path] = out.String()
		return nil
	})
	return rendered, err
}

// writeConfiguration puts everything that the node's programs read into the state folder.
func writeConfiguration(s settings.Settings, runc string) error {
	rendered, err := render(valuesOf(s, runc))
	if err != nil {
		return fmt.Errorf("rendering the configuration: %w", err)
	}
	for path, text := range rendered {
		target := s.Path(path)
		// The CNI folder must hold nothing but network lists.
		if filepath.Ext(path) == ".conflist" {
			target = s.Path("cni", "10-"+filepath.Base(path))
		}
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(target, []byte(text), 0o600); err != nil {
			return err
		}
	}
	for _, folder := range []string{"containerd-opt", "volume-plugins", "volumes"} {
		if err := os.MkdirAll(s.Path(folder), 0o755); err != nil {
			return err
		}
	}
	return os.WriteFile(s.Path("resolv.conf"), nil, 0o644)
}
