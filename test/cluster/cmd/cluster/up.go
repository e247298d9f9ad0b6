package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/clusterextensions/operator-controller/test/programs"
)

func newUpCommand(dir *string) *cobra.Command {
	var nodes int
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start a cluster in the background",
		Long: `Start a cluster in the background and print how to use it:

  eval "$(go run -C test ./cluster/cmd/cluster up)"

A cluster that is up already is left as it is.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := newSite(*dir)
			if err != nil {
				return err
			}
			current, err := up(cmd, s, nodes)
			if err != nil {
				return err
			}
			printUsage(cmd, s, current)
			return nil
		},
	}
	cmd.Flags().IntVar(&nodes, "nodes", 1, "number of simulated nodes")
	return cmd
}

// printUsage prints what a shell evaluates to its standard output, and what a
// person reads beside it.
func printUsage(cmd *cobra.Command, s site, current state) {
	fmt.Fprintf(cmd.OutOrStdout(), "export KUBECONFIG=%s\n", shellQuote(current.Kubeconfig))
	cmd.PrintErrf("kubectl: %s\n", current.Kubectl)
	cmd.PrintErrf("logs: %s\n", s.logDir())
	cmd.PrintErrf("stop the cluster: %s\n", s.stopCommand())
}

// stopCommand returns the command that stops the cluster.
func (s site) stopCommand() string {
	return "go run -C test ./cluster/cmd/cluster down --dir " + shellQuote(s.dir)
}

func shellQuote(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// up returns the state of a cluster that can be used, starting one if there is
// none.
func up(cmd *cobra.Command, s site, nodes int) (state, error) {
	current, running, err := s.running()
	if err != nil {
		return state{}, err
	}
	if want := programs.KubernetesVersion(); running && current.Kubernetes != "" && current.Kubernetes != want {
		return state{}, fmt.Errorf("the running cluster has Kubernetes %s, not %s: stop it with `%s`, or set KUBERNETES=%[1]s to use it",
			current.Kubernetes, want, s.stopCommand())
	}
	// Here and not in the background, so that the progress is seen.
	if _, err := programs.Build(cmd.Context(), cmd.ErrOrStderr()); err != nil {
		return state{}, err
	}
	// The build may have taken minutes.
	if current, running, err = s.running(); err != nil {
		return state{}, err
	}
	if !running {
		if err := s.create(); err != nil {
			return state{}, err
		}
		if err := startSupervisor(cmd.Context(), s, nodes); err != nil {
			return state{}, err
		}
		if current, err = s.readState(); err != nil {
			return state{}, err
		}
	}
	if current.Kubeconfig == "" {
		return state{}, errors.New("another command is starting the cluster")
	}
	return current, nil
}

// startSupervisor starts a supervisor and returns when its cluster can be used.
// The supervisor is stopped if the context ends before.
func startSupervisor(ctx context.Context, s site, nodes int) error {
	log, err := openSupervisorLog(s)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the supervisor has its own descriptor
	outcome, report, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("making pipe: %w", err)
	}
	defer func() { _ = outcome.Close() }()
	supervisor, err := supervisorCommand(s, nodes)
	if err == nil {
		supervisor.Stdout, supervisor.Stderr = log, log
		supervisor.ExtraFiles = []*os.File{report}
		err = supervisor.Start()
	}
	_ = report.Close() // the supervisor has its own descriptor
	if err != nil {
		return fmt.Errorf("starting supervisor: %w", err)
	}
	interrupt := context.AfterFunc(ctx, func() { _ = supervisor.Process.Signal(syscall.SIGTERM) })
	defer interrupt()
	return awaitOutcome(outcome, s)
}

// supervisorCommand runs this program in a session of its own, so that no
// terminal can end it.
func supervisorCommand(s site, nodes int) (*exec.Cmd, error) {
	executable, err := os.Executable()
	if err != nil {
		return nil, err
	}
	arguments := []string{superviseName, "--dir", s.dir, "--nodes", strconv.Itoa(nodes)}
	supervisor := exec.Command(executable, arguments...) //nolint:gosec,noctx // this program; it outlives this command
	supervisor.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return supervisor, nil
}

// awaitOutcome reads what the supervisor reports: nothing if the cluster can be
// used, otherwise why not.
func awaitOutcome(outcome io.Reader, s site) error {
	message, err := io.ReadAll(outcome)
	if err != nil {
		return fmt.Errorf("waiting for supervisor: %w", err)
	}
	if len(message) > 0 {
		return errors.New(string(message))
	}
	current, running, err := s.running()
	if err != nil {
		return err
	}
	if !running || current.Kubeconfig == "" {
		return fmt.Errorf("supervisor was killed; its log is %s", s.supervisorLog())
	}
	return nil
}

func openSupervisorLog(s site) (*os.File, error) {
	if err := os.MkdirAll(s.logDir(), 0o700); err != nil {
		return nil, fmt.Errorf("making log directory: %w", err)
	}
	log, err := os.OpenFile(s.supervisorLog(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening supervisor log: %w", err)
	}
	return log, nil
}
