package node

import (
	"encoding/json"
	"io"
	"time"
)

// Event is what PID 1 tells `up` on its way. Exactly one field is set; an end of the stream
// without Ready or Failed means that PID 1 itself has ended.
type Event struct {
	Reached *Step    `json:"reached,omitempty"`
	Failed  *Failure `json:"failed,omitempty"`
	Ready   bool     `json:"ready,omitempty"`
}

// Step is a stretch of the way that is done.
type Step struct {
	Name string    `json:"name"`
	At   time.Time `json:"at"`
}

// FoldersMounted is the step from which Folders are in use by this cluster's mounts.
const FoldersMounted = "folders mounted"

// Failure is why the cluster does not come up.
type Failure struct {
	// Part is whose log holds the reason.
	Part    string `json:"part"`
	Message string `json:"message"`
}

func (f *Failure) Error() string { return f.Message }

// tell writes an event. Nobody listens any more when `up` was killed: that is no failure.
func tell(out io.Writer, event Event) {
	line, err := json.Marshal(event)
	if err == nil {
		_, _ = out.Write(append(line, '\n'))
	}
}
