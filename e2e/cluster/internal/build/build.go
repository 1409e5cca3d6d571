// Package build makes the programs and base images of a cluster. What is up to date is kept.
package build

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"agentrun.dev/e2e/cluster/internal/lock"
	"agentrun.dev/e2e/cluster/internal/settings"
)

// patience with another build into the same cache: a first one takes a quarter of an hour.
const patience = 45 * time.Minute

// Build makes everything that `up` needs. sources is the folder of this module.
func Build(ctx context.Context, s settings.Settings, sources string, out io.Writer) error {
	if os.Geteuid() != 0 {
		return errors.New("must be root: packages are installed and the kernel is tried out")
	}
	guard, err := lock.File(filepath.Join(s.Cache, "build.lock"), patience)
	if err != nil {
		return err
	}
	defer guard.Release()
	say := func(format string, values ...any) { _, _ = fmt.Fprintf(out, "build: "+format+"\n", values...) }
	if err := installPackages(ctx, say); err != nil {
		return err
	}
	LoadModules()
	if err := tryKernel(s); err != nil {
		return err
	}
	compiler, err := newCompiler(ctx, s, sources, say)
	if err != nil {
		return err
	}
	for _, p := range programs(compiler.kubernetes) {
		if err := compiler.compile(ctx, p); err != nil {
			return err
		}
	}
	for _, image := range baseImages() {
		if err := makeImage(s, image, say); err != nil {
			return fmt.Errorf("image %s: %w", image.reference, err)
		}
	}
	say("ready in %s", s.Cache)
	return nil
}

// Present tells what `build` has yet to make.
func Present(s settings.Settings) error {
	var wanted []string
	for _, p := range programs("") {
		wanted = append(wanted, s.Program(p.name))
	}
	for _, image := range baseImages() {
		wanted = append(wanted, image.archive(s))
	}
	for _, path := range wanted {
		if _, err := os.Stat(path); err != nil {
			return fmt.Errorf("%s is missing: run build first", path)
		}
	}
	return nil
}
