package build

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
)

// reporter prints one line about the progress.
type reporter func(format string, values ...any)

// packages of Debian that a cluster or the making of the product's images needs.
var packages = []string{
	"busybox-static",               // content of the base image
	"ca-certificates",              // Go's module downloads
	"conntrack",                    // kube-proxy
	"containernetworking-plugins",  // Pods' network
	"iproute2", "iptables", "kmod", // the node's network
	"nftables", // kube-proxy
	"runc",     // Pods; crun refuses some layouts of cgroups
	"util-linux",
	// Images of the product, built by root without a daemon.
	"buildah",
}

func installPackages(ctx context.Context, say reporter) error {
	if _, err := exec.LookPath("dpkg-query"); err != nil {
		return fmt.Errorf("this needs Debian or a relative of it (dpkg and apt-get); elsewhere, point KUBECONFIG to a cluster of your own")
	}
	missing := missingPackages(ctx)
	if len(missing) == 0 {
		return nil
	}
	say("installing %s", strings.Join(missing, " "))
	// Lists that came with a machine image are stale.
	if err := apt(ctx, "update"); err != nil {
		return err
	}
	return apt(ctx, append([]string{"install", "--yes", "--no-install-recommends"}, missing...)...)
}

func missingPackages(ctx context.Context) []string {
	arguments := append([]string{"--show", "--showformat", "${Package} ${Status}\n"}, packages...)
	// The exit status only says that some package is unknown.
	known, _ := exec.CommandContext(ctx, "dpkg-query", arguments...).Output()
	return notInstalled(packages, string(known))
}

func notInstalled(wanted []string, listing string) []string {
	installed := map[string]bool{}
	for line := range strings.Lines(listing) {
		name, status, _ := strings.Cut(strings.TrimSpace(line), " ")
		installed[name] = strings.HasSuffix(status, " ok installed")
	}
	var missing []string
	for _, name := range wanted {
		if !installed[name] {
			missing = append(missing, name)
		}
	}
	return missing
}

func apt(ctx context.Context, arguments ...string) error {
	command := exec.CommandContext(ctx, "apt-get", append([]string{"--quiet"}, arguments...)...)
	command.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	output, err := command.CombinedOutput()
	if err == nil {
		return nil
	}
	return fmt.Errorf("apt-get %s: %w\n%s", arguments[0], err, withoutAddresses(lastLines(string(output), 15)))
}

var address = regexp.MustCompile(`[a-z]+://[^\s/]+`)

// withoutAddresses keeps hosts, and credentials in their addresses, out of logs.
func withoutAddresses(text string) string { return address.ReplaceAllString(text, "(registry)") }

func lastLines(text string, count int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-count):], "\n")
}

// LoadModules loads kernel modules where they are not built in. What is really missing shows
// when it is used.
func LoadModules() {
	if modprobe, err := exec.LookPath("modprobe"); err == nil {
		_ = exec.Command(modprobe, "-qa", "overlay", "bridge", "br_netfilter", "ip_tables", "iptable_mangle",
			"ip6_tables", "ip6table_filter", "nfnetlink_queue", "xt_NFQUEUE", "nf_tables").Run()
	}
}

var errGo = errors.New("no Go toolchain: install the version that go.mod names, or a later one")
