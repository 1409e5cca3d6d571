package reap

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
)

func TestExitsAreDeliveredToTheirOwnChild(t *testing.T) {
	table := New()
	output, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	endings := map[string]string{"exit 0": "exit status 0", "exit 7": "exit status 7", "kill -TERM $$": "terminated"}
	var group sync.WaitGroup
	for range 20 { // many at once: their signals merge
		for script, want := range endings {
			group.Go(func() {
				child, err := table.Start(output, "sh", "-c", script)
				if err != nil {
					t.Error(err)
					return
				}
				err = child.Wait()
				if got := child.Ending(); got != want || (err == nil) != (script == "exit 0") {
					t.Errorf("%s: got %s, %v", script, got, err)
				}
			})
		}
	}
	group.Wait()
}
