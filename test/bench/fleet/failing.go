package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
)

const failingCPULimit = 3

// refusal is why all extensions fail: the API server refuses one object of each, as it does
// where a quota is used up, or a policy forbids something.
const refusal = "no more Services"

// failing measures a minute of 1,000 extensions that cannot be installed for the same
// reason.
func (b *bench) failing(ctx context.Context) (over, err error) {
	failing := names("failing", b.size)
	if err := errors.Join(b.prepare(ctx, failing), b.publish(ctx, "failing", failing, small), b.refuseServices(ctx)); err != nil {
		return nil, err
	}
	log, err := b.startController(ctx)
	if err != nil {
		return nil, err
	}
	say("having %d extensions fail", b.size)
	began := time.Now()
	if err := errors.Join(b.create(ctx, generatedExtensions(failing)...), b.await(ctx, failing, isRefused)); err != nil {
		return nil, err
	}
	failed := time.Since(began)
	before, err := os.ReadFile(log)
	if err != nil {
		return nil, err
	}
	b.audit.mark()
	cpu, err := b.idleCPU(ctx, "failing")
	if err != nil {
		return nil, err
	}
	after, err := os.ReadFile(log)
	if err != nil {
		return nil, err
	}
	requests, err := b.audit.requests()
	if err != nil {
		return nil, err
	}
	lines, errorLines := linesOf(after[len(before):])
	name := fmt.Sprintf("60 seconds, %d extensions failing for one cause", b.size)
	return errors.Join(
		b.report.Tell(name, "all-have-failed-after-seconds", failed.Seconds()),
		b.report.Check(name, "cpu-seconds", cpu, failingCPULimit),
		b.report.Tell(name, "log-lines", float64(lines)),
		b.report.Tell(name, "error-lines", float64(errorLines)),
		b.report.Tell(name, "requests-but-watches/extension", float64(len(requests)-watches(requests))/float64(b.size)),
	), b.details.requests("failing", requests, b.size)
}

// refuseServices returns when the API server refuses to create any.
func (b *bench) refuseServices(ctx context.Context) error {
	if err := errors.Join(b.Admin.Create(ctx, refusingPolicy()), b.Admin.Create(ctx, refusingBinding())); err != nil {
		return err
	}
	return poll(ctx, "Services to be refused", func() (bool, error) {
		service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "refused"}}
		service.Spec.Ports = []corev1.ServicePort{{Port: 80}}
		err := b.Admin.Create(ctx, service, client.DryRunAll)
		return err != nil && strings.Contains(err.Error(), refusal), nil
	})
}

const policyName = "no-services"

func refusingPolicy() *admissionregistrationv1.ValidatingAdmissionPolicy {
	services := admissionregistrationv1.NamedRuleWithOperations{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"services"}},
	}}
	return &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: policyName},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{services},
			},
			Validations: []admissionregistrationv1.Validation{
				{Expression: "false", Message: refusal, Reason: new(metav1.StatusReasonForbidden)},
			},
		},
	}
}

func refusingBinding() *admissionregistrationv1.ValidatingAdmissionPolicyBinding {
	return &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: policyName},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName:        policyName,
			ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}
}

// isRefused says that an extension tells why it is not installed.
func isRefused(extension *ocv1.ClusterExtension) bool {
	progressing := meta.FindStatusCondition(extension.Status.Conditions, ocv1.TypeProgressing)
	return progressing != nil && strings.Contains(progressing.Message, refusal)
}

// linesOf is how many lines a log has, and how many of them are of level error.
func linesOf(log []byte) (all, errors int) {
	for line := range bytes.Lines(log) {
		all++
		var entry struct {
			Level string `json:"level"`
		}
		if json.Unmarshal(line, &entry) == nil && entry.Level == "error" {
			errors++
		}
	}
	return all, errors
}
