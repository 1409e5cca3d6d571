package life

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"agentrun.dev/e2e/cluster/internal/build"
	"agentrun.dev/e2e/cluster/internal/lock"
	"agentrun.dev/e2e/cluster/internal/node"
	"agentrun.dev/e2e/cluster/internal/proc"
	"agentrun.dev/e2e/cluster/internal/settings"
)

// InitCommand is the hidden subcommand that is PID 1 of a cluster.
const InitCommand = "__init"

// Up brings the cluster up and returns when it is usable.
func Up(s settings.Settings, mode node.Mode, out io.Writer) error {
	began := time.Now()
	guard, err := lockCluster(s)
	if err != nil {
		return err
	}
	defer guard.Release()
	if err := build.Present(s); err != nil {
		return err
	}
	up, err := alreadyUp(s, mode)
	if err != nil {
		return err
	}
	if up {
		_, err := fmt.Fprintf(out, "up: already up (%s); KUBECONFIG=%s\n", mode, s.Kubeconfig())
		return err
	}
	// What a killed or failed run left.
	if err := takeDown(s, everything); err != nil {
		return err
	}
	if err := bringUp(s, mode, began, out); err != nil {
		return errors.Join(explained(s, err), takeDown(s, allButLogs))
	}
	_, err = fmt.Fprintf(out, "up: %s ready in %.1f s; KUBECONFIG=%s\n", mode, time.Since(began).Seconds(), s.Kubeconfig())
	return err
}

func alreadyUp(s settings.Settings, mode node.Mode) (bool, error) {
	r, err := running(s)
	if err != nil || !isReady(s) {
		return false, nil
	}
	if r.Mode != mode {
		return false, fmt.Errorf("a cluster of mode %s is up in %s: run down first, or give another CLUSTER_STATE and CLUSTER_PORT", r.Mode, s.State)
	}
	if lost := EndedParts(s); lost != "" {
		return false, fmt.Errorf("the cluster in %s is damaged (%s): run down first", s.State, lost)
	}
	return true, nil
}

func bringUp(s settings.Settings, mode node.Mode, began time.Time, out io.Writer) error {
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", s.Port))
	if err != nil {
		return fmt.Errorf("port %d is not free, give another CLUSTER_PORT: %w", s.Port, err)
	}
	defer func() { _ = listener.Close() }()
	if err := makeState(s); err != nil {
		return err
	}
	release, err := prepareMachine(s, mode)
	if err != nil {
		return err
	}
	defer release()
	events, err := launch(s, mode, listener.(*net.TCPListener))
	if err != nil {
		return err
	}
	defer func() { _ = events.Close() }()
	return follow(events, began, out, func(step string) {
		if step == node.FoldersMounted {
			release()
		}
	})
}

// makeState puts the marker in first: killed at any point, it leaves what `down` removes.
func makeState(s settings.Settings) error {
	if err := os.MkdirAll(s.State, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(s.Path(marker), nil, 0o600); err != nil {
		return err
	}
	return os.MkdirAll(s.Path("log"), 0o700)
}

// prepareMachine makes the folders that the cluster mounts its own on. They are locked until
// the mounts show that they are in use.
func prepareMachine(s settings.Settings, mode node.Mode) (release func(), err error) {
	if mode != node.Full {
		return func() {}, nil
	}
	build.LoadModules()
	guard, err := lockMachine()
	if err != nil {
		return nil, err
	}
	if err := makeFolders(s); err != nil {
		guard.Release()
		return nil, err
	}
	return releaseOnce(guard), nil
}

func releaseOnce(guard *lock.Lock) func() {
	return func() {
		if guard != nil {
			guard.Release()
		}
		guard = nil
	}
}

// makeFolders notes what it makes before it makes it, so that `down` finds it in any case.
func makeFolders(s settings.Settings) error {
	var missing []string
	for _, folder := range node.Folders {
		if !pathExists(folder) {
			missing = append(missing, folder)
		}
	}
	if err := os.WriteFile(s.Path("folders"), []byte(strings.Join(missing, "\n")), 0o600); err != nil {
		return err
	}
	for _, folder := range missing {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
	}
	return nil
}

// launch starts PID 1 in new namespaces and puts it on record. Until then it does nothing.
func launch(s settings.Settings, mode node.Mode, listener *net.TCPListener) (io.ReadCloser, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	socket, err := listener.File()
	if err != nil {
		return nil, err
	}
	defer func() { _ = socket.Close() }()
	events, eventsIn, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _ = eventsIn.Close() }()
	startOut, start, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _ = startOut.Close(); _ = start.Close() }()
	log, err := os.Create(s.Log("init"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	first := exec.Command(self, InitCommand, string(mode))
	first.Env = append(os.Environ(), s.Env()...)
	first.Stdout, first.Stderr, first.Dir = log, log, "/"
	first.ExtraFiles = []*os.File{socket, eventsIn, startOut}
	first.SysProcAttr = &syscall.SysProcAttr{
		Setsid:     true,
		Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET,
	}
	if err := first.Start(); err != nil {
		return nil, fmt.Errorf("the kernel refused new pid, mount and network namespaces: %w", err)
	}
	// Reaped as soon as it ends, so that it does not stay as a zombie while `up` still works.
	go func() { _ = first.Wait() }()
	if err := putOnRecord(s, mode, first.Process.Pid); err != nil {
		return nil, err
	}
	_, err = start.Write([]byte{1})
	return events, err
}

func putOnRecord(s settings.Settings, mode node.Mode, pid int) error {
	identity, err := proc.Identify(pid)
	if err != nil {
		return fmt.Errorf("PID 1 of the cluster: %w", err)
	}
	namespaces, err := proc.NamespacesOf(pid)
	if err != nil {
		return fmt.Errorf("PID 1 of the cluster: %w", err)
	}
	return record{Mode: mode, Init: identity, Namespaces: namespaces}.write(s)
}

// follow prints the steps of PID 1 until it is ready or has failed.
func follow(events io.Reader, began time.Time, out io.Writer, onStep func(string)) error {
	lines := bufio.NewScanner(events)
	for lines.Scan() {
		var event node.Event
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			return fmt.Errorf("PID 1 said %q: %w", lines.Text(), err)
		}
		switch {
		case event.Ready:
			return nil
		case event.Failed != nil:
			return event.Failed
		case event.Reached != nil:
			onStep(event.Reached.Name)
			if _, err := fmt.Fprintf(out, "up: %5.1f s %s\n", event.Reached.At.Sub(began).Seconds(), event.Reached.Name); err != nil {
				return err
			}
		}
	}
	return &node.Failure{Part: "init", Message: "PID 1 of the cluster ended without a word"}
}

// explained adds the end of the log that holds the reason.
func explained(s settings.Settings, err error) error {
	failure := &node.Failure{}
	if !errors.As(err, &failure) {
		return err
	}
	end := tail(s.Log(failure.Part), 20)
	if end == "" {
		return err
	}
	return fmt.Errorf("%w\n--- end of %s\n%s", err, s.Log(failure.Part), end)
}
