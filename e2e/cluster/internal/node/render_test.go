package node

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"agentrun.dev/e2e/cluster/internal/settings"
)

var example = settings.Settings{Cache: "/cache", State: "/run/second", Port: 1}

func rendered(t *testing.T) map[string]string {
	t.Helper()
	texts, err := render(valuesOf(example, "/usr/sbin/runc"))
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

func TestEveryFileIsFilledIn(t *testing.T) {
	texts := rendered(t)
	if len(texts) != 6 {
		t.Errorf("%d files", len(texts))
	}
	for path, text := range texts {
		if strings.Contains(text, "{{") || strings.Contains(text, "<no value>") {
			t.Errorf("%s is not filled in:\n%s", path, text)
		}
	}
}

func TestPathsAndNamesAreOfThisCluster(t *testing.T) {
	texts := rendered(t)
	for path, want := range map[string]string{
		"config/kubelet.yaml":             "cgroupRoot: /second\n",
		"config/containerd.toml":          `BinaryName = "/usr/sbin/runc"`,
		"config/proxy.yaml":               "/run/second/pki/proxy.kubeconfig",
		"manifests/storage.yaml":          `"/run/second/volumes"`,
		"manifests/network-policies.yaml": "--nfqueue-id=100\n",
	} {
		if !strings.Contains(texts[path], want) {
			t.Errorf("%s lacks %s", path, want)
		}
	}
}

func TestTheNetworkListIsJSONWithoutIPv6(t *testing.T) {
	var list struct {
		Plugins []struct {
			Type   string
			Sysctl map[string]string
		}
	}
	if err := json.Unmarshal([]byte(rendered(t)["config/pods.conflist"]), &list); err != nil {
		t.Fatal(err)
	}
	last := list.Plugins[len(list.Plugins)-1]
	if last.Type != "tuning" || last.Sysctl["net.ipv6.conf.default.disable_ipv6"] != "1" {
		t.Fatalf("got %+v", last)
	}
}

func TestWritingPutsOnlyNetworkListsIntoTheirFolder(t *testing.T) {
	s := settings.Settings{State: t.TempDir()}
	if err := writeConfiguration(s, "runc"); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(s.Path("cni"))
	if err != nil || len(entries) != 1 || entries[0].Name() != "10-pods.conflist" {
		t.Fatalf("got %v, %v", entries, err)
	}
	if text, err := os.ReadFile(s.Path("resolv.conf")); err != nil || len(text) > 0 {
		t.Fatalf("Pods would get a name server: %q, %v", text, err)
	}
}

func TestTheAPIServerIsAsStrictAsRealOnes(t *testing.T) {
	arguments := apiServer(example).arguments
	for _, want := range []string{
		"--enable-admission-plugins=NodeRestriction,OwnerReferencesPermissionEnforcement",
		"--authorization-mode=Node,RBAC",
		"--client-ca-file=/run/second/pki/ca.crt",
	} {
		if !slices.Contains(arguments, want) {
			t.Errorf("%s is missing in %v", want, arguments)
		}
	}
}
