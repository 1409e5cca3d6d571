package node

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// setting is a kernel parameter of this network namespace.
type setting struct{ path, value, needs string }

func (b *boot) nodeAddress() error {
	return applyNetwork(b.finish, addressCommands(), addressSettings())
}

func (b *boot) podNetwork() error { return applyNetwork(b.finish, filterCommands(), podSettings()) }

// applyNetwork is also how `build` tries out what the kernel has.
func applyNetwork(run func(command) error, commands []command, settings []setting) error {
	for _, s := range settings {
		if err := os.WriteFile(s.path, []byte(s.value), 0o644); err != nil {
			return fmt.Errorf("%w: needs %s", err, s.needs)
		}
	}
	for _, c := range commands {
		if err := run(c); err != nil {
			return err
		}
	}
	return nil
}

func addressSettings() []setting {
	return []setting{
		{"/proc/sys/net/ipv4/ip_forward", "1", "IPv4"},
		{"/proc/sys/net/ipv6/conf/all/disable_ipv6", "1", "IPv6 in the kernel, to switch it off"},
		{"/proc/sys/net/ipv6/conf/default/disable_ipv6", "1", "IPv6 in the kernel, to switch it off"},
	}
}

// addressCommands give the node its address. A bridge without ports keeps one as a dummy link
// would, which not every kernel has. The gateway answers nothing, but without a default route
// the node finds no way to a ClusterIP: routes are looked up before addresses are rewritten.
func addressCommands() []command {
	return []command{
		words("ip link set lo up"),
		words("ip link add node0 type bridge"),
		words("ip addr add " + nodeIP + "/24 dev node0"),
		words("ip link set node0 up"),
		words("ip route add default via " + gatewayIP + " dev node0"),
	}
}

// podSettings send packets between Pods on one bridge through the packet filter too.
func podSettings() []setting {
	const needs = "the kernel module br_netfilter"
	return []setting{
		{"/proc/sys/net/bridge/bridge-nf-call-iptables", "1", needs},
		{"/proc/sys/net/bridge/bridge-nf-call-ip6tables", "1", needs},
	}
}

// filterCommands queue new connections from and to Pods for the policy agent. It would queue
// them by nftables itself, which needs CONFIG_NFT_QUEUE; these rules do with the older
// NFQUEUE target. With nobody on the queue, packets are dropped.
func filterCommands() []command {
	queue := "-j NFQUEUE --queue-num " + strconv.Itoa(policyQueue)
	mangle := func(rule string) command { return words("iptables-legacy -w -t mangle " + rule) }
	return []command{
		mangle("-N POLICY"),
		mangle("-A POLICY -m conntrack --ctstate ESTABLISHED,RELATED -j RETURN"),
		mangle("-A POLICY -s " + podCIDR + " " + queue),
		mangle("-A POLICY -d " + podCIDR + " " + queue),
		// The node reaches its own Pods whatever the policies say: the kubelet probes them.
		mangle("-A POSTROUTING -m addrtype --src-type LOCAL -j RETURN"),
		mangle("-A POSTROUTING -j POLICY"),
		// From a Pod to the node, as to the API server, packets never pass POSTROUTING.
		mangle("-A INPUT -j POLICY"),
		// Link-local IPv6 on the bridge would lead around all of that.
		words("ip6tables-legacy -w -P FORWARD DROP"),
		words("ip6tables-legacy -w -P INPUT DROP"),
	}
}

// words splits a command line without quotes.
func words(line string) command {
	fields := strings.Fields(line)
	return command{program: fields[0], arguments: fields[1:]}
}
