package node

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
)

// EnforcePolicies puts rules of the kernel in the place of a network plugin: for the
// policies and the pods of this moment, until StopEnforcing.
func (n *Node) EnforcePolicies(ctx context.Context) error {
	policies, pods := &networkingv1.NetworkPolicyList{}, &corev1.PodList{}
	if err := n.Admin.List(ctx, policies); err != nil {
		return fmt.Errorf("reading network policies: %w", err)
	}
	if err := n.Admin.List(ctx, pods); err != nil {
		return fmt.Errorf("reading pods: %w", err)
	}
	rules, err := policyRules(policies.Items, pods.Items)
	if err != nil {
		return err
	}
	return nft(ctx, rules)
}

// StopEnforcing ends EnforcePolicies.
func (n *Node) StopEnforcing(ctx context.Context) error {
	return nft(ctx, "delete table inet "+policyTable+"\n")
}

func nft(ctx context.Context, rules string) error {
	command := exec.CommandContext(ctx, "nft", "-f", "-")
	command.Stdin = strings.NewReader(rules)
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("loading rules: %w: %s", err, output)
	}
	return nil
}

// Dial connects to an address as a process in the pod would, and hangs up. What a
// policy refuses is a timeout.
func (n *Node) Dial(ctx context.Context, from *corev1.Pod, address string) error {
	processes, err := Processes(string(from.UID))
	if err != nil {
		return err
	}
	if len(processes) == 0 {
		return fmt.Errorf("pod %s has no process", from.Name)
	}
	result := make(chan error)
	go func() {
		// The thread stays in the namespace of the pod; it ends with the goroutine.
		runtime.LockOSThread()
		result <- dialIn(ctx, processes[0], address)
	}()
	return <-result
}

const dialTimeout = 2 * time.Second

func dialIn(ctx context.Context, process int, address string) error {
	namespace, err := os.Open(filepath.Join("/proc", strconv.Itoa(process), "ns", "net"))
	if err != nil {
		return fmt.Errorf("finding the network of a pod: %w", err)
	}
	defer func() { _ = namespace.Close() }() // was only read
	if err := unix.Setns(int(namespace.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("entering the network of a pod: %w", err)
	}
	connection, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return connection.Close()
}

// Processes are the ids of those in pods whose cgroups have the text in their names,
// such as the UID of a pod; of all pods if it is empty.
func Processes(text string) ([]int, error) {
	paths, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		return nil, err
	}
	var ids []int
	for _, path := range paths {
		cgroup, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(cgroup), "/kubepods") || !strings.Contains(string(cgroup), text) {
			continue // it has ended, or is another's
		}
		id, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}
