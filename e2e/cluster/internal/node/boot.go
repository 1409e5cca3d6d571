package node

import (
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"time"

	"agentrun.dev/e2e/cluster/internal/reap"
	"agentrun.dev/e2e/cluster/internal/settings"
)

// boot brings the parts of a cluster up in their order.
type boot struct {
	settings settings.Settings
	mode     Mode
	events   io.Writer
	table    *reap.Table
	// ended gets every part that ends: none of them should.
	ended chan ended
	api   *apiClient
}

type ended struct{ part, how string }

func (b *boot) run() error {
	if err := os.MkdirAll(b.settings.Path("log"), 0o700); err != nil {
		return err
	}
	if err := ownMounts(); err != nil {
		return err
	}
	b.reached("namespaces made")
	if err := b.serversUp(); err != nil {
		return err
	}
	loading, err := b.runtimeUp()
	if err != nil {
		return err
	}
	if err := b.await(90*time.Second, "API server ready", "kube-apiserver", b.api.ready); err != nil {
		return err
	}
	for _, c := range []command{controllerManager(b.settings), scheduler(b.settings)} {
		if err := b.start(c); err != nil {
			return err
		}
	}
	if err := b.nodeUp(loading); err != nil {
		return err
	}
	// A Pod that is made before its ServiceAccount is refused.
	if err := b.await(60*time.Second, "default ServiceAccount there", "kube-controller-manager", b.api.hasDefaultAccount); err != nil {
		return err
	}
	if err := b.podsUp(); err != nil {
		return err
	}
	go b.watch()
	return os.WriteFile(b.settings.Path("ready"), nil, 0o600)
}

// serversUp starts what both modes share, up to the API server.
func (b *boot) serversUp() error {
	if err := b.nodeAddress(); err != nil {
		return err
	}
	if err := b.start(etcd(b.settings)); err != nil {
		return err
	}
	admin, err := makeCertificates(b.settings, time.Now())
	if err != nil {
		return fmt.Errorf("making certificates: %w", err)
	}
	b.api = admin
	return b.start(apiServer(b.settings))
}

// runtimeUp makes the ground for Pods while the API server starts. It returns the process that
// imports the images.
func (b *boot) runtimeUp() (*reap.Child, error) {
	if b.mode != Full {
		return nil, nil
	}
	if err := mountFolders(b.settings); err != nil {
		return nil, err
	}
	b.reached(FoldersMounted)
	if err := makeCgroups(cgroupRoot, b.settings.Name()); err != nil {
		return nil, err
	}
	runc, err := exec.LookPath("runc")
	if err != nil {
		return nil, err
	}
	if err := writeConfiguration(b.settings, runc); err != nil {
		return nil, err
	}
	if err := b.podNetwork(); err != nil {
		return nil, err
	}
	if err := b.start(containerd(b.settings)); err != nil {
		return nil, err
	}
	if err := b.await(30*time.Second, "containerd listening", "containerd", exists(containerdSocket)); err != nil {
		return nil, err
	}
	found, err := archives(b.settings)
	if err != nil {
		return nil, err
	}
	return b.launch(imageLoader(found))
}

// nodeUp starts the node's own parts and returns when the node takes Pods.
func (b *boot) nodeUp(loading *reap.Child) error {
	if b.mode != Full {
		return nil
	}
	for _, c := range []command{kubelet(b.settings), proxy(b.settings)} {
		if err := b.start(c); err != nil {
			return err
		}
	}
	if err := b.finish(createManifests(b.settings)); err != nil {
		return err
	}
	if err := loading.Wait(); err != nil {
		return &Failure{Part: "image-loader", Message: "the images could not be loaded: " + err.Error()}
	}
	return b.await(60*time.Second, "node ready", "kubelet", b.api.nodeReady)
}

// podsUp waits for the Pods that make policies and volumes work. When one does not start, the
// kubelet's log holds the reason.
func (b *boot) podsUp() error {
	if b.mode != Full {
		return nil
	}
	if err := b.await(90*time.Second, "network policies enforced", "kubelet", b.api.policiesEnforced); err != nil {
		return err
	}
	return b.await(90*time.Second, "volumes provisioned", "kubelet", b.api.volumesProvisioned)
}

func (b *boot) reached(name string) {
	tell(b.events, Event{Reached: &Step{Name: name, At: time.Now()}})
}

// start runs a part that must not end.
func (b *boot) start(c command) error {
	child, err := b.launch(c)
	if err != nil {
		return err
	}
	go func() {
		<-child.Done
		b.ended <- ended{c.program, child.Ending()}
	}()
	return nil
}

func (b *boot) launch(c command) (*reap.Child, error) {
	return b.launchTo(c.program, c)
}

func (b *boot) launchTo(log string, c command) (*reap.Child, error) {
	file, err := os.OpenFile(b.settings.Log(log), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	return b.table.Start(file, c.program, c.arguments...)
}

// finish runs a program to its end.
func (b *boot) finish(c command) error {
	const part = "setup"
	child, err := b.launchTo(part, c)
	if err == nil {
		err = child.Wait()
	}
	if err != nil {
		return &Failure{Part: part, Message: fmt.Sprintf("%s %v: %v", c.program, c.arguments, err)}
	}
	return nil
}

// await polls until a condition holds. It blames a part that ended meanwhile, and otherwise
// the given one when the time is over.
func (b *boot) await(patience time.Duration, what, blamed string, holds func() bool) error {
	deadline := time.After(patience)
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case gone := <-b.ended:
			return &Failure{Part: gone.part, Message: fmt.Sprintf("%s ended (%s) before: %s", gone.part, gone.how, what)}
		case <-deadline:
			return &Failure{Part: blamed, Message: fmt.Sprintf("not within %v: %s", patience, what)}
		case <-tick.C:
		}
	}
	b.reached(what)
	return nil
}

// watch notes parts that end later. They are not started again: a test that kills one wants to
// see it gone, and a cluster that lost one by itself should not look whole.
func (b *boot) watch() {
	for gone := range b.ended {
		line := fmt.Sprintf("%s ended (%s)\n", gone.part, gone.how)
		log.Print(line)
		file, err := os.OpenFile(b.settings.Path("ended"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			log.Print(err)
			continue
		}
		_, _ = file.WriteString(line)
		_ = file.Close()
	}
}

func exists(path string) func() bool {
	return func() bool {
		_, err := os.Stat(path)
		return err == nil
	}
}
