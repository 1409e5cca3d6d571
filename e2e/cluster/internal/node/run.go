package node

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"

	"agentrun.dev/e2e/cluster/internal/reap"
	"agentrun.dev/e2e/cluster/internal/settings"
)

// File descriptors that `up` hands to PID 1.
const (
	listenerDescriptor = 3 + iota // accepts connections on the machine's side
	eventsDescriptor              // takes Events
	startDescriptor               // gives one byte when this process is on record
)

// Run is PID 1 of a cluster's namespaces. It returns only when it cannot bring the cluster up,
// and with it the kernel ends every process in them.
func Run(s settings.Settings, mode Mode) error {
	if os.Getpid() != 1 {
		return errors.New("this is started by up, inside new namespaces")
	}
	// A killed `up` closes its end: what is on no record must not stay.
	if n, _ := os.NewFile(startDescriptor, "start").Read(make([]byte, 1)); n != 1 {
		return errors.New("up ended before it could record this process")
	}
	for descriptor := listenerDescriptor; descriptor <= startDescriptor; descriptor++ {
		syscall.CloseOnExec(descriptor)
	}
	events := os.NewFile(eventsDescriptor, "events")
	boot, err := newBoot(s, mode, events)
	if err == nil {
		err = boot.run()
	}
	if err != nil {
		failure := &Failure{}
		if !errors.As(err, &failure) {
			failure = &Failure{Part: initPart, Message: err.Error()}
		}
		tell(events, Event{Failed: failure})
		return err
	}
	tell(events, Event{Ready: true})
	_ = events.Close()
	select {}
}

const initPart = "init"

func newBoot(s settings.Settings, mode Mode, events io.Writer) (*boot, error) {
	if err := os.Setenv("PATH", s.SearchPath(os.Getenv("PATH"))); err != nil {
		return nil, err
	}
	if err := os.Setenv("XTABLES_LOCKFILE", s.Path("xtables.lock")); err != nil {
		return nil, err
	}
	listener, err := net.FileListener(os.NewFile(listenerDescriptor, "listener"))
	if err != nil {
		return nil, fmt.Errorf("the listening socket is unusable: %w", err)
	}
	go forward(listener, fmt.Sprintf("127.0.0.1:%d", apiPort))
	return &boot{settings: s, mode: mode, events: events, table: reap.New(), ended: make(chan ended, 16)}, nil
}
