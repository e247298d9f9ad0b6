package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/clusterextensions/operator-controller/test/cluster"
	"github.com/clusterextensions/operator-controller/test/internal/filelock"
	"github.com/clusterextensions/operator-controller/test/programs"
)

const superviseName = "supervise"

// reportDescriptor is where the supervisor reports to the command that started
// it: the first of its extra files.
const reportDescriptor = 3

func newSuperviseCommand(dir *string) *cobra.Command {
	var nodes int
	cmd := &cobra.Command{
		Use:    superviseName,
		Short:  "Hold a cluster until stopped; started by up",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			// It is inherited, so it would be inherited by the components, too, and
			// never end.
			syscall.CloseOnExec(reportDescriptor)
			report := os.NewFile(reportDescriptor, "report")
			s, err := newSite(*dir)
			if err != nil {
				return err
			}
			c, err := bringUp(cmd, s, nodes)
			if err != nil {
				_, _ = fmt.Fprint(report, err) // the error is in the log as well
				return err
			}
			_ = report.Close() // nothing reported means that all is well
			return hold(cmd.Context(), s, c)
		},
	}
	cmd.Flags().IntVar(&nodes, "nodes", 1, "number of simulated nodes")
	return cmd
}

// held is a cluster and the lock that says so.
type held struct {
	cluster *cluster.Cluster
	lock    *filelock.Lock
}

// bringUp starts the cluster of the site. If it fails, only logs are left.
func bringUp(cmd *cobra.Command, s site, nodes int) (*held, error) {
	lock, err := s.lock()
	if err != nil {
		return nil, err
	}
	c, err := startCluster(cmd, s, nodes)
	if err != nil {
		return nil, errors.Join(err, s.clear(), lock.Release())
	}
	return &held{cluster: c, lock: lock}, nil
}

func startCluster(cmd *cobra.Command, s site, nodes int) (*cluster.Cluster, error) {
	if err := s.clear(); err != nil {
		return nil, err
	}
	// Written before the start, so that down can stop one that hangs.
	current := state{Supervisor: os.Getpid()}
	if err := s.writeState(current); err != nil {
		return nil, err
	}
	if nodes == 0 {
		nodes = cluster.NoNodes
	}
	c, err := cluster.Start(cmd.Context(), cluster.Options{
		Dir:      s.clusterDir(),
		LogDir:   s.logDir(),
		Nodes:    nodes,
		Progress: cmd.ErrOrStderr(),
	})
	if err != nil {
		return nil, err
	}
	current.Processes = c.Processes()
	current.Kubeconfig = c.Kubeconfig()
	current.Kubectl = c.Binaries().Kubectl
	current.Kubernetes = programs.KubernetesVersion()
	if err := s.writeState(current); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

// hold keeps the cluster until the context ends or a component is lost, and
// leaves only logs.
func hold(ctx context.Context, s site, h *held) error {
	lost := h.cluster.Wait(ctx)
	return errors.Join(lost, h.cluster.Stop(), s.clear(), h.lock.Release())
}
