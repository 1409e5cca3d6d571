// Command clusterbox is every server and client of the cluster in one binary: they share most
// of their packages, which are then compiled, linked and kept in memory once. The name it is
// called by says which program it is.
package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	_ "github.com/containerd/containerd/v2/cmd/containerd/builtins"
	"github.com/containerd/containerd/v2/cmd/containerd/command"
	ctr "github.com/containerd/containerd/v2/cmd/ctr/app"
	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

// programs by name; each answers with its exit status.
var programs = map[string]func(context.Context) int{
	"containerd":              func(ctx context.Context) int { return status(command.App().Run(ctx, os.Args)) },
	"ctr":                     func(ctx context.Context) int { return status(ctr.New().Run(ctx, os.Args)) },
	"etcd":                    func(context.Context) int { etcdmain.Main(os.Args); return 0 },
	"image-loader":            func(ctx context.Context) int { return status(loadImages(ctx, os.Args[1:])) },
	"kube-apiserver":          func(context.Context) int { return cli.Run(apiserver.NewAPIServerCommand()) },
	"kube-controller-manager": func(context.Context) int { return cli.Run(controllers.NewControllerManagerCommand()) },
	"kube-proxy":              func(context.Context) int { return cli.Run(proxy.NewProxyCommand()) },
	"kube-scheduler":          func(context.Context) int { return cli.Run(scheduler.NewSchedulerCommand()) },
	"kubectl":                 func(context.Context) int { return runKubectl(cmd.NewDefaultKubectlCommand()) },
	"kubelet":                 func(ctx context.Context) int { return cli.Run(kubelet.NewKubeletCommand(ctx)) },
}

func main() {
	name := filepath.Base(os.Args[0])
	run, known := programs[name]
	if !known {
		names := slices.Sorted(maps.Keys(programs))
		fmt.Fprintf(os.Stderr, "clusterbox: called as %q, knows %s\n", name, strings.Join(names, ", "))
		os.Exit(2)
	}
	os.Exit(run(context.Background()))
}

// runKubectl prints errors the way kubectl does: CheckErr knows more than their text.
func runKubectl(command *cobra.Command) int {
	if err := cli.RunNoErrOutput(command); err != nil {
		util.CheckErr(err)
	}
	return 0
}

func status(err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintf(os.Stderr, "%s: %v\n", filepath.Base(os.Args[0]), err)
	return 1
}
