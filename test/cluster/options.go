package cluster

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"

	"github.com/clusterextensions/operator-controller/test/programs"
)

// NoNodes asks for a cluster without nodes and without KWOK.
const NoNodes = -1

// defaultNodes are enough for workloads that do not spread.
const defaultNodes = 1

// ErrInvalidOptions says that no cluster can be started with these options.
var ErrInvalidOptions = errors.New("invalid options")

// Options says what cluster to start. The zero value is a useful cluster.
type Options struct {
	// Dir is the working directory. It is created if missing, must be empty,
	// and is removed by Stop. Default: one in the temporary directory.
	Dir string
	// LogDir gets one log file for each component and is left in place.
	// Default: a part of Dir, removed by Stop and kept if the start fails.
	LogDir string
	// Nodes is the number of simulated nodes. Default: 1; NoNodes for none.
	Nodes int
	// Binaries are the programs to run. Default: what [programs.Build] returns.
	Binaries *programs.Binaries
	// Progress is told what is being built. Default: nobody.
	Progress io.Writer
	// Snapshot is a file with a snapshot of etcd, whose content the cluster begins
	// with. Default: it begins empty.
	Snapshot string
	// Audit makes the API server record the requests it gets. Default: it
	// records none.
	Audit *Audit
	// Dial connects the API server to Services and pods, which is what it does
	// to call webhooks. Default: nobody does, and such calls fail.
	Dial Dialer
	// AdmissionPlugins are enabled in addition to those on by default.
	AdmissionPlugins []string

	// Etcd, APIServer, ControllerManager, Scheduler and KWOK replace or add
	// command line flags of the component. The addresses, the endpoint
	// reconciler and the kubelet credentials of the API server are such flags.
	Etcd, APIServer, ControllerManager, Scheduler, KWOK Flags
}

// Flags are command line flags: names without dashes, and values.
type Flags map[string]string

// merged is the flags with those of others in their place where both have one.
func (f Flags) merged(others Flags) Flags {
	merged := maps.Clone(f)
	maps.Copy(merged, others)
	return merged
}

// arguments is the flags as a command line, sorted.
func (f Flags) arguments() []string {
	arguments := make([]string, 0, len(f))
	for _, name := range slices.Sorted(maps.Keys(f)) {
		arguments = append(arguments, "--"+name+"="+f[name])
	}
	return arguments
}

// completed is the options with every default filled in and every path
// absolute, or an error that is ErrInvalidOptions.
func (o Options) completed() (Options, error) {
	if o.Nodes < NoNodes {
		return o, fmt.Errorf("%w: %d nodes", ErrInvalidOptions, o.Nodes)
	}
	if o.Nodes == 0 {
		o.Nodes = defaultNodes
	}
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	if o.LogDir != "" {
		dir, err := filepath.Abs(o.LogDir)
		if err != nil {
			return o, fmt.Errorf("locating log directory: %w", err)
		}
		o.LogDir = dir
	}
	if o.Snapshot != "" {
		file, err := filepath.Abs(o.Snapshot)
		if err != nil {
			return o, fmt.Errorf("locating snapshot: %w", err)
		}
		o.Snapshot = file
	}
	if o.Audit != nil {
		audit, err := o.Audit.completed()
		if err != nil {
			return o, err
		}
		o.Audit = &audit
	}
	_, err := o.bindAddress()
	return o, err
}

// bindAddress is where the API server listens.
func (o Options) bindAddress() (netip.Addr, error) {
	text, ok := o.APIServer["bind-address"]
	if !ok {
		return loopback, nil
	}
	address, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("%w: bind-address: %w", ErrInvalidOptions, err)
	}
	return address, nil
}

// admissionPlugins is the value of the flag that enables the plugins.
func (o Options) admissionPlugins() string {
	return strings.Join(o.AdmissionPlugins, ",")
}
