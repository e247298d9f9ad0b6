package node

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
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
