package node

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// errUnknownPolicy says that a policy has something that policyRules has no rules for.
var errUnknownPolicy = errors.New("there are no rules for this part of a network policy")

// policyTable is the table of nftables that has the rules; they are replaced in one step.
const policyTable = "network_policies"

// policyRules are rules of nftables with the effect of network policies on pods: what a
// policy selects gets no connection from another pod that no policy allows. As with
// network plugins, what comes from the node passes, and what is refused is not answered.
// Policies may have what those of the controller have: ingress, by ports, from everywhere.
func policyRules(policies []networkingv1.NetworkPolicy, pods []corev1.Pod) (string, error) {
	var rules strings.Builder
	fmt.Fprintf(&rules, "table inet %[1]s {}\ndelete table inet %[1]s\ntable inet %[1]s {\n", policyTable)
	rules.WriteString("  chain ingress {\n    type filter hook forward priority filter; policy accept;\n")
	rules.WriteString("    ct state established,related accept\n")
	for i := range pods {
		lines, err := rulesOfPod(policies, &pods[i])
		if err != nil {
			return "", err
		}
		for _, line := range lines {
			fmt.Fprintf(&rules, "    ip daddr %s %s\n", pods[i].Status.PodIP, line)
		}
	}
	rules.WriteString("  }\n}\n")
	return rules.String(), nil
}

// rulesOfPod are none for a pod that no policy selects.
func rulesOfPod(policies []networkingv1.NetworkPolicy, pod *corev1.Pod) ([]string, error) {
	var lines []string
	isolated := false
	for i := range policies {
		selects, err := selectsPod(&policies[i], pod)
		if err != nil {
			return nil, err
		}
		if !selects {
			continue
		}
		isolated = true
		allowed, err := allowedPorts(&policies[i])
		if err != nil {
			return nil, err
		}
		lines = append(lines, allowed...)
	}
	if isolated {
		lines = append(lines, "drop")
	}
	return lines, nil
}

func selectsPod(policy *networkingv1.NetworkPolicy, pod *corev1.Pod) (bool, error) {
	if policy.Namespace != pod.Namespace || pod.Status.PodIP == "" || pod.Spec.HostNetwork {
		return false, nil
	}
	if slices.Contains(policy.Spec.PolicyTypes, networkingv1.PolicyTypeEgress) || len(policy.Spec.Egress) > 0 {
		return false, fmt.Errorf("%w: egress of %s", errUnknownPolicy, policy.Name)
	}
	selector, err := metav1.LabelSelectorAsSelector(&policy.Spec.PodSelector)
	if err != nil {
		return false, fmt.Errorf("reading the selector of %s: %w", policy.Name, err)
	}
	return selector.Matches(labels.Set(pod.Labels)), nil
}

// allowedPorts are rules that accept what a policy allows.
func allowedPorts(policy *networkingv1.NetworkPolicy) ([]string, error) {
	var lines []string
	for _, rule := range policy.Spec.Ingress {
		if len(rule.From) > 0 || len(rule.Ports) == 0 {
			return nil, fmt.Errorf("%w: an ingress of %s by peers, or without ports", errUnknownPolicy, policy.Name)
		}
		for _, port := range rule.Ports {
			if port.Port == nil || port.Port.IntVal == 0 || port.EndPort != nil || port.Protocol == nil {
				return nil, fmt.Errorf("%w: a port of %s by name, or a range", errUnknownPolicy, policy.Name)
			}
			lines = append(lines, fmt.Sprintf("%s dport %d accept", strings.ToLower(string(*port.Protocol)), port.Port.IntVal))
		}
	}
	return lines, nil
}
