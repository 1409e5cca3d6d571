// Package check proves that a running cluster does what the product's tests rely on.
package check

import (
	"context"
	"fmt"
	"io"

	"agentrun.dev/e2e/cluster/internal/life"
	"agentrun.dev/e2e/cluster/internal/settings"
)

// Run fails when a part of the running cluster has ended.
func Run(_ context.Context, s settings.Settings, out io.Writer) error {
	if _, err := life.Mode(s); err != nil {
		return err
	}
	if lost := life.EndedParts(s); lost != "" {
		return fmt.Errorf("parts have ended: %s", lost)
	}
	_, err := fmt.Fprintln(out, "all parts alive")
	return err
}
