// Command cluster runs a real Kubernetes of one node on the machine it is called on, in
// namespaces of its own.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"agentrun.dev/e2e/cluster/internal/build"
	"agentrun.dev/e2e/cluster/internal/check"
	"agentrun.dev/e2e/cluster/internal/life"
	"agentrun.dev/e2e/cluster/internal/node"
	"agentrun.dev/e2e/cluster/internal/settings"
)

const usage = `usage: cluster COMMAND

  build                   make the programs and base images (the first time: a quarter of an hour)
  up [--control-plane]    bring the cluster up; with the option without a node to run Pods
  down                    end it and remove all it made
  exec COMMAND...         run a command inside, with kubectl, helm and ctr at hand
  load-image ARCHIVE...   import image archives; prints NAME@sha256:DIGEST of each image
  logs [PART]             print the log of one part, or the end of all
  check                   prove that the running cluster does what it should
  kubeconfig              print the path of the kubeconfig for programs outside

CLUSTER_CACHE (programs, images), CLUSTER_STATE (one cluster) and CLUSTER_PORT (its API server on
127.0.0.1) choose where; two clusters run side by side with two states and ports.
`

// sources is the folder of this module; the entry script sets it at link time.
var sources = "."

// errUsage asks for the usage text.
var errUsage = errors.New("wrong arguments")

func main() {
	err := run(os.Args[1:])
	var exit *exec.ExitError
	switch {
	case err == nil:
	case errors.Is(err, errUsage):
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	case errors.As(err, &exit) && exit.Exited():
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(exit.ExitCode())
	default:
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) == 0 {
		return errUsage
	}
	s, err := settings.FromEnv(os.Getenv)
	if err != nil {
		return err
	}
	// Ended by a signal, a build must end its compilers.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	name, rest := arguments[0], arguments[1:]
	switch {
	case name == "build" && len(rest) == 0:
		return build.Build(ctx, s, sources, os.Stderr)
	case name == "up":
		return up(s, rest)
	case name == "down" && len(rest) == 0:
		return life.Down(s, os.Stdout)
	case name == "exec" && len(rest) > 0:
		return life.Exec(s, rest)
	case name == "load-image" && len(rest) > 0:
		return life.LoadImages(s, rest, os.Stdout)
	case name == "logs" && len(rest) <= 1:
		return life.Logs(s, append(rest, "")[0], os.Stdout)
	case name == "check" && len(rest) == 0:
		return check.Run(ctx, s, os.Stdout)
	case name == "kubeconfig" && len(rest) == 0:
		fmt.Println(s.Kubeconfig())
		return nil
	case name == life.InitCommand && len(rest) == 1:
		stop()
		return node.Run(s, node.Mode(rest[0]))
	case name == build.TryCommand && len(rest) == 1:
		return node.Try(rest[0])
	}
	return errUsage
}

func up(s settings.Settings, arguments []string) error {
	flags := flag.NewFlagSet("up", flag.ContinueOnError)
	controlPlane := flags.Bool("control-plane", false, "etcd, API server, controllers and scheduler only")
	if err := flags.Parse(arguments); err != nil || flags.NArg() > 0 {
		return errUsage
	}
	mode := node.Full
	if *controlPlane {
		mode = node.ControlPlane
	}
	return life.Up(s, mode, os.Stdout)
}
