package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

// prefix starts the name of the directory and of the cgroups of a run; the id of its
// process follows.
const prefix = "operator-controller-node-"

// The stages of a run, as a variable of the environment: the process that was started
// prepares and cleans up, one in namespaces of its own finds out whether a node can be had,
// the first process of those of the run sets them up and reaps, and the last runs the tests.
const (
	stageVariable = "OPERATOR_CONTROLLER_NODE_STAGE"
	dirVariable   = "OPERATOR_CONTROLLER_NODE_DIR"

	stageProbe = "probe"
	stageFirst = "first"
	stageTests = "tests"
)

// Inside runs what needs namespaces in them, and gives the code to exit with. Before,
// and outside of them, where there is a network, it lets prepare fill the directory of
// the run. Where no node can be had it says so, and that is no failure.
func Inside(prepare func(ctx context.Context, dir string) error, run func(ctx context.Context, dir string) (int, error)) int {
	ctx, dir := context.Background(), os.Getenv(dirVariable)
	var code int
	var err error
	switch os.Getenv(stageVariable) {
	case stageProbe:
		err = probe(ctx)
	case stageFirst:
		code, err = runFirst(ctx, dir)
	case stageTests:
		code, err = run(ctx, dir)
	default:
		code, err = runOutside(ctx, prepare)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "test/node:", err)
		code = 1
	}
	return code
}

// runOutside prepares, runs this program again in namespaces of its own, and removes
// what they leave.
func runOutside(ctx context.Context, prepare func(context.Context, string) error) (code int, err error) {
	text := skipText()
	if text == "" {
		text = lackText()
	}
	if text != "" {
		fmt.Fprintln(os.Stderr, text)
		return 0, nil
	}
	removeAbandoned()
	name := prefix + strconv.Itoa(os.Getpid())
	dir := filepath.Join(os.TempDir(), name)
	made, err := makeDirectories(dir)
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, made.remove()) }()
	if err := prepare(ctx, dir); err != nil {
		return 1, err
	}
	if err := makeCgroups(name); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, removeCgroups(name)) }()
	code, err = runInNamespaces(dir)
	if code != 0 || err != nil {
		err = errors.Join(err, keepLogs(dir))
	}
	return code, err
}

// runInNamespaces waits for the run. It is killed with this process, and with it
// everything in its namespaces: the kernel does it, when the thread that forked ends.
func runInNamespaces(dir string) (int, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return exitCode(inNamespaces(again(dir, stageFirst)).Run())
}

// inNamespaces gives a command namespaces of its own, and the end of this process.
func inNamespaces(command *exec.Cmd) *exec.Cmd {
	command.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC,
		Pdeathsig:  syscall.SIGKILL,
	}
	return command
}

// again is this program in another stage.
func again(dir, stage string) *exec.Cmd {
	//nolint:gosec,noctx // this program, and the test has a limit of time of its own
	command := exec.Command("/proc/self/exe", os.Args[1:]...)
	command.Env = append(os.Environ(), stageVariable+"="+stage, dirVariable+"="+dir)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	return command
}

func exitCode(err error) (int, error) {
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Exited() {
		return exit.ExitCode(), nil
	}
	return 0, err
}

// logsDir is the part of a run's directory that stays when a test fails.
func logsDir(dir string) string { return filepath.Join(dir, "logs") }

func keepLogs(dir string) error {
	kept := filepath.Join(os.TempDir(), strings.Replace(filepath.Base(dir), "node-", "node-logs-", 1))
	if err := os.RemoveAll(kept); err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "logs are kept in", kept)
	return os.Rename(logsDir(dir), kept)
}

// directories are those that a run has made.
type directories []string

// mountPoints are where programs of a node write whatever they are told.
var mountPoints = []string{"/run", "/var/log", "/var/lib/cni", "/var/lib/kubelet"}

// makeDirectories makes the directory of a run, and the mount points that the host
// does not have.
func makeDirectories(dir string) (directories, error) {
	if err := os.MkdirAll(logsDir(dir), 0o700); err != nil {
		return nil, fmt.Errorf("making the directory of the run: %w", err)
	}
	made := directories{dir}
	for _, path := range mountPoints {
		err := os.Mkdir(path, 0o755) //nolint:gosec // as the programs would make it
		if err == nil {
			made = append(made, path)
		} else if !errors.Is(err, os.ErrExist) {
			return made, fmt.Errorf("making a mount point: %w", err)
		}
	}
	return made, nil
}

func (d directories) remove() error {
	errs := []error{os.RemoveAll(d[0])}
	for _, path := range d[1:] {
		errs = append(errs, os.Remove(path))
	}
	return errors.Join(errs...)
}

// removeAbandoned removes what runs have left whose process was killed. What cannot
// be removed is not about the run that begins now.
func removeAbandoned() {
	for _, pattern := range append(cgroupPatterns(), filepath.Join(os.TempDir(), prefix+"[0-9]*")) {
		paths, _ := filepath.Glob(pattern) // the pattern is well formed
		for _, path := range paths {
			name := filepath.Base(path)
			pid, err := strconv.Atoi(strings.TrimPrefix(name, prefix))
			if err != nil || !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
				continue
			}
			_ = removeCgroups(name)
			_ = os.RemoveAll(filepath.Join(os.TempDir(), name))
		}
	}
}
