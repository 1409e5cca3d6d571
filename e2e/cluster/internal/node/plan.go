// Package node is the inside of a cluster: the program that is PID 1 of its namespaces, and what
// it sets up there.
package node

import (
	"fmt"
	"path/filepath"

	"agentrun.dev/e2e/cluster/internal/settings"
)

// Addresses inside the cluster's own network namespace. Clusters never see each other's.
const (
	nodeName    = "node1"
	nodeIP      = "10.213.0.1"
	gatewayIP   = "10.213.0.254" // answers nothing, see network.go
	serviceCIDR = "10.96.0.0/16"
	serviceIP   = "10.96.0.1"
	podCIDR     = "10.244.0.0/16"
	podSubnet   = "10.244.0.0/24"
	policyQueue = 100
	apiPort     = 6443
)

const containerdSocket = "/run/containerd/containerd.sock"

// Mode says how much of a cluster comes up.
type Mode string

// The two modes.
const (
	// Full is a node that runs Pods.
	Full Mode = "node"
	// ControlPlane has an API server, but nothing runs on it.
	ControlPlane Mode = "control-plane"
)

// Folders that the node's programs have fixed paths for. Each cluster mounts its own there.
var Folders = []string{
	"/run/containerd", "/run/netns", "/run/nri",
	"/var/lib/cni", "/var/lib/containerd", "/var/lib/kubelet",
	"/var/log/containers", "/var/log/pods",
}

// command is a program with its arguments. Its log has the program's name.
type command struct {
	program   string
	arguments []string
}

func etcd(s settings.Settings) command {
	return command{"etcd", []string{
		"--data-dir=" + s.Path("etcd"),
		"--listen-client-urls=http://127.0.0.1:2379",
		"--advertise-client-urls=http://127.0.0.1:2379",
		"--listen-peer-urls=http://127.0.0.1:2380",
		// Nothing here outlives the machine, so nothing needs to reach its disk.
		"--unsafe-no-fsync",
		"--log-level=warn",
	}}
}

func apiServer(s settings.Settings) command {
	pki := func(name string) string { return s.Path("pki", name) }
	return command{"kube-apiserver", []string{
		"--etcd-servers=http://127.0.0.1:2379",
		"--advertise-address=" + nodeIP,
		"--bind-address=0.0.0.0",
		fmt.Sprintf("--secure-port=%d", apiPort),
		"--tls-cert-file=" + pki("apiserver.crt"),
		"--tls-private-key-file=" + pki("apiserver.key"),
		"--client-ca-file=" + pki("ca.crt"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-signing-key-file=" + pki("tokens.key"),
		"--service-account-key-file=" + pki("tokens.pub"),
		"--service-cluster-ip-range=" + serviceCIDR,
		"--authorization-mode=Node,RBAC",
		// Beside those that are on by default, Pod Security among them. The second is what
		// OpenShift has on: setting blockOwnerDeletion needs a right on the owner's finalizers.
		"--enable-admission-plugins=NodeRestriction,OwnerReferencesPermissionEnforcement",
		"--allow-privileged=true",
		// The node's name is known to no name server.
		"--kubelet-preferred-address-types=InternalIP",
		"--kubelet-certificate-authority=" + pki("ca.crt"),
		"--kubelet-client-certificate=" + pki("kubelet-client.crt"),
		"--kubelet-client-key=" + pki("kubelet-client.key"),
	}}
}

func controllerManager(s settings.Settings) command {
	return command{"kube-controller-manager", []string{
		"--kubeconfig=" + s.Path("pki", "controllers.kubeconfig"),
		"--leader-elect=false",
		"--service-account-private-key-file=" + s.Path("pki", "tokens.key"),
		"--root-ca-file=" + s.Path("pki", "ca.crt"),
		"--use-service-account-credentials=true",
		"--cluster-cidr=" + podCIDR,
		"--allocate-node-cidrs=true",
		"--cluster-signing-cert-file=" + s.Path("pki", "ca.crt"),
		"--cluster-signing-key-file=" + s.Path("pki", "ca.key"),
		// Each controller first asks for an account of its own. At the default of 20 requests
		// a second the first ServiceAccounts come five seconds later.
		"--kube-api-qps=200",
		"--kube-api-burst=400",
	}}
}

func scheduler(s settings.Settings) command {
	return command{"kube-scheduler", []string{
		"--kubeconfig=" + s.Path("pki", "scheduler.kubeconfig"),
		"--leader-elect=false",
	}}
}

func containerd(s settings.Settings) command {
	return command{"containerd", []string{"--config", s.Path("config", "containerd.toml")}}
}

func imageLoader(archives []string) command {
	return command{"image-loader", append([]string{containerdSocket}, archives...)}
}

func kubelet(s settings.Settings) command {
	return command{"kubelet", []string{
		"--config=" + s.Path("config", "kubelet.yaml"),
		"--kubeconfig=" + s.Path("pki", "kubelet.kubeconfig"),
		"--hostname-override=" + nodeName,
		"--node-ip=" + nodeIP,
		"--root-dir=/var/lib/kubelet",
	}}
}

func proxy(s settings.Settings) command {
	return command{"kube-proxy", []string{"--config=" + s.Path("config", "proxy.yaml")}}
}

func createManifests(s settings.Settings) command {
	return command{"kubectl", []string{"--kubeconfig", s.InnerKubeconfig(), "create", "--filename", s.Path("manifests")}}
}

// archives are the base images in the order of their names.
func archives(s settings.Settings) ([]string, error) {
	found, err := filepath.Glob(filepath.Join(s.Images(), "*.tar"))
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("no image in %s: run build first", s.Images())
	}
	return found, err
}
