package cluster

import (
	"fmt"
	"net/netip"
	"os"
	"strings"
)

// apiServerHosts are the names under which pods and people reach the API server.
var apiServerHosts = []string{
	"localhost",
	"kubernetes",
	"kubernetes.default",
	"kubernetes.default.svc",
	"kubernetes.default.svc.cluster.local",
}

// clientSubjects are the components that are clients of the API server, and as
// whom.
var clientSubjects = map[string]subject{
	controllerManagerName: {user: controllerManagerUser},
	schedulerName:         {user: schedulerUser},
	kwokName:              {user: kwokUser, groups: []string{mastersGroup}},
}

// serverAddresses are the addresses under which an API server with these flags
// is reached.
func serverAddresses(flags Flags) ([]netip.Addr, error) {
	services, _, _ := strings.Cut(flags["service-cluster-ip-range"], ",")
	prefix, err := netip.ParsePrefix(services)
	if err != nil {
		return nil, fmt.Errorf("%w: service-cluster-ip-range: %w", ErrInvalidOptions, err)
	}
	addresses := []netip.Addr{loopback, prefix.Masked().Addr().Next()}
	for _, flag := range []string{"advertise-address", "bind-address"} {
		address, err := netip.ParseAddr(flags[flag])
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrInvalidOptions, flag, err)
		}
		addresses = append(addresses, address)
	}
	return addresses, nil
}

// writeServerFiles writes the keys and certificates that apiServerFlags and
// controllerManagerFlags name.
func writeServerFiles(dir *workDir, authority *authority, addresses []netip.Addr) error {
	if err := authority.write(dir.join("ca")); err != nil {
		return err
	}
	pairs := map[string]subject{
		"apiserver":      {user: apiServerName, hosts: apiServerHosts, addresses: addresses},
		"kubelet-client": {user: kubeletClientUser, groups: []string{mastersGroup}},
		"front-proxy":    {user: frontProxyUser},
	}
	for name, to := range pairs {
		pair, err := authority.issue(to)
		if err != nil {
			return err
		}
		if err := pair.write(dir.join(name)); err != nil {
			return err
		}
	}
	return writeServiceAccountKey(dir.join("service-account.key"))
}

// writeServiceAccountKey writes the key that signs the tokens of
// ServiceAccounts.
func writeServiceAccountKey(path string) error {
	key, err := newKey()
	if err != nil {
		return err
	}
	encoded, err := encodeKey(key)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, encoded, 0o600); err != nil {
		return fmt.Errorf("writing ServiceAccount key: %w", err)
	}
	return nil
}
