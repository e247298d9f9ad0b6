package node

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// cniPlugins is where Debian installs them.
const cniPlugins = "/usr/lib/cni"

// needs are the packages of Debian, and a program of each.
var needs = []struct{ pkg, program string }{
	{"runc", "runc"},
	{"containerd", "containerd"},
	{"containernetworking-plugins", cniPlugins + "/bridge"},
	{"nftables", "nft"},
	{"iproute2", "ip"},
}

// skipText says what is missing for a node, and is empty if nothing is.
func skipText() string {
	var missing []string
	for _, need := range needs {
		if _, err := exec.LookPath(need.program); err != nil {
			missing = append(missing, need.pkg)
		}
	}
	const all = "test/node: skipped: needs root, runc, containerd, containernetworking-plugins and nftables"
	switch {
	case len(missing) > 0:
		return fmt.Sprintf("%s (apt-get install %s)", all, strings.Join(missing, " "))
	case os.Geteuid() != 0:
		return all + " (they are here, but this is not root)"
	default:
		return ""
	}
}

// lackText says what the kernel does not give this process that a node takes, and is empty
// if nothing is known to be missing.
func lackText() string {
	runtime.LockOSThread() // with its thread, the kernel would end the command
	defer runtime.UnlockOSThread()
	command := inNamespaces(again("", stageProbe))
	command.Stdout, command.Stderr = nil, nil
	if said, err := command.CombinedOutput(); err != nil {
		return fmt.Sprintf("test/node: skipped: this machine cannot be a node (%v): %s", err, strings.TrimSpace(string(said)))
	}
	return ""
}

// probe does, in namespaces of its own, once what containerd, the plugins and kube-proxy do.
func probe(ctx context.Context) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	top := os.TempDir()
	if err := unix.Mount("tmpfs", top, "tmpfs", 0, "mode=0755"); err != nil {
		return fmt.Errorf("mounting a file system in memory: %w", err)
	}
	var folders []any
	for _, name := range []string{"lower", "upper", "work", "merged"} {
		folder := filepath.Join(top, name)
		if err := os.Mkdir(folder, 0o700); err != nil {
			return err
		}
		folders = append(folders, folder)
	}
	options := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", folders[:3]...)
	if err := unix.Mount("overlay", filepath.Join(top, "merged"), "overlay", 0, options); err != nil {
		return fmt.Errorf("mounting an overlay: %w", err)
	}
	for _, line := range []string{
		"ip link add probe0 type veth peer name probe1",
		"ip link add probe2 type bridge",
		"nft add table ip probe",
		"nft add chain ip probe nat { type nat hook postrouting priority 100 ; }",
		"nft add rule ip probe nat masquerade",
	} {
		words := strings.Fields(line)
		if said, err := exec.CommandContext(ctx, words[0], words[1:]...).CombinedOutput(); err != nil { //nolint:gosec // one of the lines above
			return fmt.Errorf("%s: %w: %s", line, err, strings.TrimSpace(string(said)))
		}
	}
	return nil
}
