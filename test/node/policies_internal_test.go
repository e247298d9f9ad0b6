package node

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func TestPolicyRules(t *testing.T) {
	t.Parallel()
	pods := []corev1.Pod{pod("system", "a", "10.244.0.1"), pod("system", "b", "10.244.0.2"), pod("else", "a", "10.244.0.3")}
	deny := policy("system", nil)
	allow := policy("system", map[string]string{"app": "a"}, 8443)
	got, err := policyRules([]networkingv1.NetworkPolicy{deny, allow}, pods)
	if err != nil {
		t.Fatal(err)
	}
	const want = `table inet network_policies {}
delete table inet network_policies
table inet network_policies {
  chain ingress {
    type filter hook forward priority filter; policy accept;
    ct state established,related accept
    ip daddr 10.244.0.1 tcp dport 8443 accept
    ip daddr 10.244.0.1 drop
    ip daddr 10.244.0.2 drop
  }
}
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
}

func TestPolicyRulesRefuseWhatTheyDoNotKnow(t *testing.T) {
	t.Parallel()
	pods := []corev1.Pod{pod("system", "a", "10.244.0.1")}
	for name, change := range map[string]func(*networkingv1.NetworkPolicySpec){
		"egress":     func(s *networkingv1.NetworkPolicySpec) { s.PolicyTypes = []networkingv1.PolicyType{"Egress"} },
		"peers":      func(s *networkingv1.NetworkPolicySpec) { s.Ingress[0].From = []networkingv1.NetworkPolicyPeer{{}} },
		"every port": func(s *networkingv1.NetworkPolicySpec) { s.Ingress[0].Ports = nil },
		"named port": func(s *networkingv1.NetworkPolicySpec) {
			named := intstr.FromString("https")
			s.Ingress[0].Ports[0].Port = &named
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			unknown := policy("system", nil, 8443)
			change(&unknown.Spec)
			if _, err := policyRules([]networkingv1.NetworkPolicy{unknown}, pods); !errors.Is(err, errUnknownPolicy) {
				t.Errorf("error is %v", err)
			}
		})
	}
}

func pod(namespace, app, address string) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: app, Labels: map[string]string{"app": app}},
		Status:     corev1.PodStatus{PodIP: address},
	}
}

func policy(namespace string, selected map[string]string, ports ...int) networkingv1.NetworkPolicy {
	tcp := corev1.ProtocolTCP
	var ingress []networkingv1.NetworkPolicyIngressRule
	for _, port := range ports {
		number := intstr.FromInt(port)
		ingress = append(ingress, networkingv1.NetworkPolicyIngressRule{
			Ports: []networkingv1.NetworkPolicyPort{{Protocol: &tcp, Port: &number}},
		})
	}
	return networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "policy"},
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: selected},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			Ingress:     ingress,
		},
	}
}
