// Package proc recognises processes again: by pid and start time, and by their namespaces.
package proc

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// ErrGone says that a process has ended, whether or not its parent has noticed.
var ErrGone = errors.New("the process has ended")

// Identity is one process and no later one with the same pid.
type Identity struct {
	PID int `json:"pid"`
	// Start is the start time in clock ticks since boot.
	Start uint64 `json:"start"`
}

// Identify reads the identity of a living process. A zombie counts as gone.
func Identify(pid int) (Identity, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Identity{}, ErrGone
	}
	state, start, err := parseStat(string(text))
	if err != nil {
		return Identity{}, err
	}
	if state == 'Z' || state == 'X' {
		return Identity{}, ErrGone
	}
	return Identity{PID: pid, Start: start}, nil
}

// parseStat picks fields 3 and 22 of proc(5) stat. The second field is the command in
// brackets, which may itself hold spaces and brackets.
func parseStat(text string) (state byte, start uint64, err error) {
	_, rest, found := cutLast(text, ") ")
	fields := strings.Fields(rest)
	const startField = 22 - 3
	if !found || len(fields) <= startField || len(fields[0]) != 1 {
		return 0, 0, fmt.Errorf("unexpected form of a stat file: %q", text)
	}
	start, err = strconv.ParseUint(fields[startField], 10, 64)
	return fields[0][0], start, err
}

func cutLast(text, separator string) (before, after string, found bool) {
	at := strings.LastIndex(text, separator)
	if at < 0 {
		return text, "", false
	}
	return text[:at], text[at+len(separator):], true
}

// Alive tells whether this very process still runs.
func (i Identity) Alive() bool {
	now, err := Identify(i.PID)
	return err == nil && now == i
}

// Kill ends the process if it is still the remembered one.
func (i Identity) Kill() {
	if i.Alive() {
		_ = syscall.Kill(i.PID, syscall.SIGKILL)
	}
}

// Namespaces are the links under /proc/PID/ns that belong to one cluster alone.
type Namespaces struct {
	PID   string `json:"pid"`
	Net   string `json:"net"`
	Mount string `json:"mnt"`
}

// NamespacesOf reads the namespaces of a process.
func NamespacesOf(pid int) (Namespaces, error) {
	var n Namespaces
	for name, link := range map[string]*string{"pid": &n.PID, "net": &n.Net, "mnt": &n.Mount} {
		target, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/%s", pid, name))
		if err != nil {
			return Namespaces{}, err
		}
		*link = target
	}
	return n, nil
}

// shares tells whether any namespace is the same one.
func (n Namespaces) shares(other Namespaces) bool {
	return n.PID == other.PID || n.Net == other.Net || n.Mount == other.Mount
}

// Members are the processes of the machine that are in at least one of the namespaces.
func (n Namespaces) Members() []int {
	var members []int
	folders, _ := filepath.Glob("/proc/[0-9]*")
	for _, folder := range folders {
		pid, err := strconv.Atoi(filepath.Base(folder))
		if err != nil {
			continue
		}
		// A process that ends meanwhile has no namespaces to read, and is no member.
		if theirs, err := NamespacesOf(pid); err == nil && n.shares(theirs) {
			members = append(members, pid)
		}
	}
	return members
}

// MountedAnywhere tells whether any process of the machine sees a mount on the folder.
func MountedAnywhere(folder string) bool {
	tables, _ := filepath.Glob("/proc/[0-9]*/mountinfo")
	for _, table := range tables {
		text, err := os.ReadFile(table)
		if err == nil && strings.Contains(string(text), " "+folder+" ") {
			return true
		}
	}
	return false
}

// MountsBelow are the mounts that this process sees at or below a folder.
func MountsBelow(folder string) ([]string, error) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	return mountsBelow(string(text), folder), nil
}

func mountsBelow(table, folder string) []string {
	var found []string
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		const mountPoint = 4
		if len(fields) <= mountPoint {
			continue
		}
		if point := fields[mountPoint]; point == folder || strings.HasPrefix(point, folder+"/") {
			found = append(found, point)
		}
	}
	return found
}
