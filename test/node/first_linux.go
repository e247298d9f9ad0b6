package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Address is that of the node, and of everything that listens on it.
const Address = "172.31.0.2"

// Hosts of the registry: bundles and catalogs are at the first, what runs at the
// second. They are one server.
const (
	Registry        = "registry.test"
	ProgramRegistry = "registry.example"
)

// kernelVariables belong to the whole kernel, and kubelet sets them. Here it sets
// files in their place.
var kernelVariables = []string{
	"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops",
	"kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes",
}

// runFirst is the first process of the namespaces: it sets them up, runs the tests, and
// reaps what loses its parent, such as the shims of containerd.
func runFirst(ctx context.Context, dir string) (int, error) {
	if err := mountAll(dir); err != nil {
		return 1, err
	}
	if err := connect(ctx); err != nil {
		return 1, err
	}
	tests := again(dir, stageTests)
	if err := tests.Start(); err != nil {
		return 1, fmt.Errorf("starting the tests: %w", err)
	}
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return 1, fmt.Errorf("waiting for the tests: %w", err)
		case pid == tests.Process.Pid && status.Signaled():
			return 1, fmt.Errorf("the tests were ended by %s", status.Signal())
		case pid == tests.Process.Pid:
			return status.ExitStatus(), nil
		}
	}
}

// mountAll makes the mounts of this run its own, and puts empty file systems, a hosts
// file and variables of the kernel in the place of those of the host.
func mountAll(dir string) error {
	mounts := []struct {
		source, target, kind string
		flags                uintptr
	}{
		{"", "/", "", unix.MS_REC | unix.MS_PRIVATE},
		{"", "/", "", unix.MS_REC | unix.MS_SHARED}, // volumes reach containers
		{"proc", "/proc", "proc", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC},
	}
	for _, m := range mounts {
		if err := unix.Mount(m.source, m.target, m.kind, m.flags, ""); err != nil {
			return fmt.Errorf("mounting %s: %w", m.target, err)
		}
	}
	for _, target := range mountPoints {
		if err := unix.Mount("tmpfs", target, "tmpfs", 0, "mode=0755"); err != nil {
			return fmt.Errorf("mounting %s: %w", target, err)
		}
	}
	hosts := fmt.Sprintf("127.0.0.1 localhost\n%s %s %s\n", Address, Registry, ProgramRegistry)
	if err := mountFile(filepath.Join(dir, "hosts"), hosts, "/etc/hosts"); err != nil {
		return err
	}
	for _, name := range kernelVariables {
		target := filepath.Join("/proc/sys", name)
		value, err := os.ReadFile(target)
		if err != nil {
			return fmt.Errorf("reading a variable of the kernel: %w", err)
		}
		if err := mountFile(filepath.Join(dir, strings.ReplaceAll(name, "/", "-")), string(value), target); err != nil {
			return err
		}
	}
	return nil
}

// mountFile puts a file with the content over another.
func mountFile(path, content, target string) error {
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil { //nolint:gosec // read by all users, as what it stands for
		return fmt.Errorf("writing what stands for %s: %w", target, err)
	}
	if err := unix.Mount(path, target, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mounting %s: %w", target, err)
	}
	return nil
}

// connect gives the node an address, and a route to Services: without one, the kernel
// refuses to connect to them before kube-proxy's rules are asked. Nothing else can be
// reached.
func connect(ctx context.Context) error {
	for _, line := range []string{
		"link set lo up",
		"link add eth0 type veth peer name peer0",
		"addr add " + Address + "/24 dev eth0",
		"link set peer0 up",
		"link set eth0 up",
		"route add " + serviceRange + " dev eth0",
	} {
		output, err := exec.CommandContext(ctx, "ip", strings.Fields(line)...).CombinedOutput() //nolint:gosec // our own arguments
		if err != nil {
			return fmt.Errorf("ip %s: %w: %s", line, err, output)
		}
	}
	return nil
}
