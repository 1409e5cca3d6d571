// Package settings holds where one cluster lives: its cache, its state folder and its port.
package settings

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
)

// Names of the environment variables, for the program itself and for the copies it starts.
const (
	cacheVariable = "CLUSTER_CACHE"
	stateVariable = "CLUSTER_STATE"
	portVariable  = "CLUSTER_PORT"
)

const (
	defaultState = "/run/agentrun-cluster"
	defaultPort  = 16443
)

// A state folder's base name becomes a cgroup and ends up in configuration files unquoted.
var safeName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

// Paths with other characters would need quoting in TOML, YAML and mount tables.
var safePath = regexp.MustCompile(`^/[A-Za-z0-9._/@+-]+$`)

// Settings name one cluster. Two clusters run side by side when State and Port differ.
type Settings struct {
	// Cache is the folder of binaries and images. It outlives clusters and may be shared by them.
	Cache string
	// State is the folder of everything that belongs to one running cluster.
	State string
	// Port is where the API server is reached from outside, on 127.0.0.1.
	Port int
}

// FromEnv reads the settings through get, which answers like os.Getenv.
func FromEnv(get func(string) string) (Settings, error) {
	s := Settings{Cache: get(cacheVariable), State: get(stateVariable), Port: defaultPort}
	if s.State == "" {
		s.State = defaultState
	}
	if s.Cache == "" {
		home := get("HOME")
		if home == "" {
			home = "/root"
		}
		s.Cache = filepath.Join(home, ".cache/agentrun/cluster")
	}
	if text := get(portVariable); text != "" {
		port, err := strconv.Atoi(text)
		if err != nil || port < 1 || port > 65535 {
			return Settings{}, fmt.Errorf("%s is %q: give a port from 1 to 65535", portVariable, text)
		}
		s.Port = port
	}
	s.State, s.Cache = filepath.Clean(s.State), filepath.Clean(s.Cache)
	return s, s.validate()
}

func (s Settings) validate() error {
	for variable, path := range map[string]string{cacheVariable: s.Cache, stateVariable: s.State} {
		if !safePath.MatchString(path) {
			return fmt.Errorf("%s is %q: give an absolute path of letters, digits and . _ - @ +", variable, path)
		}
	}
	if !safeName.MatchString(s.Name()) {
		return fmt.Errorf("%s ends in %q, which cannot name a cgroup: begin with a letter or digit", stateVariable, s.Name())
	}
	return nil
}

// Env is the settings as environment variables for a copy of this program.
func (s Settings) Env() []string {
	return []string{
		cacheVariable + "=" + s.Cache,
		stateVariable + "=" + s.State,
		portVariable + "=" + strconv.Itoa(s.Port),
	}
}

// Name tells clusters apart where they share something: it names the cluster's cgroup.
func (s Settings) Name() string { return filepath.Base(s.State) }

// Bin is the folder of the compiled programs.
func (s Settings) Bin() string { return filepath.Join(s.Cache, "bin") }

// Program is the path of one compiled program.
func (s Settings) Program(name string) string { return filepath.Join(s.Bin(), name) }

// Images is the folder of the base images that every node gets.
func (s Settings) Images() string { return filepath.Join(s.Cache, "images") }

// Path is a path inside the state folder.
func (s Settings) Path(elements ...string) string {
	return filepath.Join(append([]string{s.State}, elements...)...)
}

// Log is the log of one part.
func (s Settings) Log(part string) string { return s.Path("log", part+".log") }

// Kubeconfig is for programs outside the cluster's namespaces: it points to Port.
func (s Settings) Kubeconfig() string { return s.Path("kubeconfig") }

// InnerKubeconfig is for programs inside the cluster's namespaces.
func (s Settings) InnerKubeconfig() string { return s.Path("pki", "admin.kubeconfig") }

// SearchPath is PATH with the cluster's programs first and the system's own behind the caller's.
func (s Settings) SearchPath(path string) string {
	return s.Bin() + ":" + path + ":/usr/local/sbin:/usr/sbin:/sbin"
}
