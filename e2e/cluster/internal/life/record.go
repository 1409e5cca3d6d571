// Package life is the outside of a cluster: bringing it up, reaching into it, taking it down.
package life

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"agentrun.dev/e2e/cluster/internal/lock"
	"agentrun.dev/e2e/cluster/internal/node"
	"agentrun.dev/e2e/cluster/internal/proc"
	"agentrun.dev/e2e/cluster/internal/settings"
)

// marker is in every state folder that `up` made. No other folder is ever removed.
const marker = ".agentrun-cluster"

// patience with another run on the same cluster, or on the machine's shared folders.
const patience = 3 * time.Minute

// record is what must be known about a cluster to end it.
type record struct {
	Mode       node.Mode       `json:"mode"`
	Init       proc.Identity   `json:"init"`
	Namespaces proc.Namespaces `json:"namespaces"`
}

func recordPath(s settings.Settings) string { return s.Path("cluster.json") }

func (r record) write(s settings.Settings) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return os.WriteFile(recordPath(s), append(text, '\n'), 0o600)
}

func readRecord(s settings.Settings) (record, error) {
	var r record
	text, err := os.ReadFile(recordPath(s))
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(text, &r)
}

// Running is the record of the cluster if it runs.
func running(s settings.Settings) (record, error) {
	r, err := readRecord(s)
	if err != nil || !r.Init.Alive() {
		return record{}, fmt.Errorf("no cluster is up in %s: run up first", s.State)
	}
	return r, nil
}

// Mode tells which cluster is up and usable.
func Mode(s settings.Settings) (node.Mode, error) {
	r, err := running(s)
	return r.Mode, err
}

// EndedParts are the lines about parts of the cluster that ended by themselves.
func EndedParts(s settings.Settings) string {
	text, _ := os.ReadFile(s.Path("ended"))
	return strings.Join(strings.Split(strings.TrimSpace(string(text)), "\n"), ", ")
}

func isReady(s settings.Settings) bool { return pathExists(s.Path("ready")) }

func pathExists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// lockCluster keeps a second `up` or `down` away from the same state folder.
func lockCluster(s settings.Settings) (*lock.Lock, error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("must be root: namespaces, mounts and cgroups are made")
	}
	return lock.File(s.State+".lock", patience)
}

// lockMachine guards the folders of the machine that clusters mount theirs on.
func lockMachine() (*lock.Lock, error) { return lock.Folder("/var/lib", patience) }
