package node

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// notForMake are variables that a make around this run was told, or that are about images
// of somebody else.
var notForMake = []string{"MAKEFLAGS", "MFLAGS", "MAKELEVEL", "IMAGE", "IMAGE_REPO", "VERSION", "CONFIG"}

// makeTarget runs a target of the Makefile, and gives what it prints. The base of images
// is the one that needs no network, and images are for this machine only.
func makeTarget(ctx context.Context, root string, variables []string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, "make", append([]string{"-s", "--no-print-directory"}, args...)...) //nolint:gosec // our own arguments
	command.Dir = root
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); !slices.Contains(notForMake, name) {
			command.Env = append(command.Env, variable)
		}
	}
	command.Env = append(command.Env, "KO_DEFAULTBASEIMAGE=base.localhost/static", "IMAGE_PLATFORMS=linux/"+runtime.GOARCH)
	command.Env = append(command.Env, variables...)
	var said strings.Builder
	command.Stderr = &said
	output, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("make %s: %w\n%s%s", strings.Join(args, " "), err, output, said.String())
	}
	return string(output), nil
}

// Make runs a target of the Makefile as the administrator of this cluster, who trusts its
// registries, and gives what it prints.
func (n *Node) Make(ctx context.Context, args ...string) (string, error) {
	return makeTarget(ctx, n.root, []string{
		"KUBECONFIG=" + n.Cluster.Kubeconfig(),
		"SSL_CERT_FILE=" + n.path("ca.crt"),
	}, append(args, "KUBECTL="+n.Cluster.Binaries().Kubectl)...)
}

// BuildController makes the image of the controller as docs/install-the-controller.md says, pushes it to the
// registry here, and gives its reference by digest.
func (n *Node) BuildController(ctx context.Context) (string, error) {
	printed, err := n.Make(ctx, "image", "IMAGE_REPO="+ProgramRegistry+"/"+controllerRepository)
	if err != nil {
		return "", err
	}
	lines := strings.Split(strings.TrimSpace(printed), "\n")
	return lines[len(lines)-1], nil
}

// ControllerLayout is the path of the image that BuildController has made.
func (n *Node) ControllerLayout() string { return filepath.Join(n.root, "bin", "image") }
