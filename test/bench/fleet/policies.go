package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/opencontainers/go-digest"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/clusterextensions/operator-controller/api/policy/v1alpha1"
	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/imagepolicy"
	"github.com/clusterextensions/operator-controller/internal/testkit/signing"
	"github.com/clusterextensions/operator-controller/test/environment"
)

const (
	// sharers is how many extensions of the thousand each policy is for: of these there are
	// 200 then.
	sharers = 5

	keyName = "cosign.pub"

	policiesIdleCPULimit = 0.5
)

// signed is the crowd with images that are signed, and policies that demand it. Each policy has
// its key in a Secret of its own.
type signed struct {
	*crowd

	policies []string
	signer   *signing.Signer
	key      []byte
}

func (b *bench) policies(ctx context.Context) (over, err error) {
	s := &signed{crowd: newCrowd(b, asAccounts), policies: names("policy", b.size/sharers)}
	if err := s.furnishPolicies(ctx); err != nil {
		return nil, err
	}
	if _, err := s.startController(ctx); err != nil {
		return nil, err
	}
	say("installing %d extensions under %d policies", s.size, len(s.policies))
	s.Registry.ResetRequests()
	began, err := s.usage()
	if err != nil {
		return nil, err
	}
	wall, err := s.arrival(ctx, at(s.names, firstVersion), func() error { return s.createAll(ctx) })
	if err := errors.Join(err, s.quiet(ctx)); err != nil {
		return nil, err
	}
	used, err := s.usage()
	if err != nil {
		return nil, err
	}
	name := s.called(fmt.Sprintf("install %%d extensions under %d policies", len(s.policies)))
	over = errors.Join(
		s.report.Tell(name, "wall-seconds", wall.Seconds()),
		s.report.Tell(name, "cpu-seconds", used.CPUSeconds-began.CPUSeconds),
		s.report.Tell(name, "requests-of-the-registry/extension", float64(len(s.Registry.Requests()))/float64(s.size)),
	)
	for _, measure := range []func(context.Context) (over, err error){s.idlePolicies, s.restartPolicies, s.changePolicy} {
		exceeded, err := measure(ctx)
		if err != nil {
			return over, err
		}
		over = errors.Join(over, exceeded)
	}
	return over, nil
}

// furnishPolicies signs every bundle that is to be installed, and makes the policies.
func (s *signed) furnishPolicies(ctx context.Context) (err error) {
	if err := s.furnish(ctx); err != nil {
		return err
	}
	if s.signer, s.key, err = signing.NewKey(); err != nil {
		return err
	}
	say("signing %d bundles", s.size)
	return errors.Join(each(s.names, inParallel, func(name string) error { return s.sign(ctx, name) }), s.createPolicies(ctx))
}

// sign puts a signature beside the image of a bundle, as cosign does since version 3.
func (s *signed) sign(ctx context.Context, extension string) error {
	tag, err := name.NewTag(s.Registry.Host() + "/" + extension + ":v" + firstVersion)
	if err != nil {
		return err
	}
	image, err := remote.Head(tag, remote.WithContext(ctx))
	if err != nil {
		return err
	}
	evidence, err := s.signer.New(digest.Digest(image.Digest.String()), imagepolicy.PredicateSignature)
	if err != nil {
		return err
	}
	return signing.Attach(ctx, s.Registry, extension, image.Digest.String(), evidence)
}

func (s *signed) createPolicies(ctx context.Context) error {
	for i, name := range s.policies {
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: environment.SystemNamespace, Name: name},
			Data:       map[string][]byte{keyName: s.key},
		}
		key := &policyv1alpha1.KeyAuthority{SecretRef: policyv1alpha1.SecretReference{Name: name}}
		policy := &policyv1alpha1.ImagePolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
		policy.Spec.Authorities = []policyv1alpha1.Authority{{Name: "release", Key: key}}
		for _, extension := range s.sharersOf(i) {
			policy.Spec.Match = append(policy.Spec.Match, policyv1alpha1.ImageMatch{Prefix: registryHost + "/" + extension})
		}
		if err := errors.Join(s.Admin.Create(ctx, secret), s.Admin.Create(ctx, policy)); err != nil {
			return err
		}
	}
	return nil
}

// sharersOf are the extensions that a policy is for.
func (s *signed) sharersOf(policy int) []string { return s.names[policy*sharers : (policy+1)*sharers] }

// idlePolicies is a minute in which nothing happens.
func (s *signed) idlePolicies(ctx context.Context) (over, err error) {
	s.audit.mark()
	s.Registry.ResetRequests()
	cpu, err := s.idleCPU(ctx, "policies-idle")
	if err != nil {
		return nil, err
	}
	requests, err := s.audit.requests()
	if err != nil {
		return nil, err
	}
	name := s.called(fmt.Sprintf("60 idle seconds, %%d extensions under %d policies", len(s.policies)))
	return errors.Join(
		s.report.Check(name, "cpu-seconds", cpu, policiesIdleCPULimit),
		s.report.Check(name, "requests-but-watches", float64(len(requests)-watches(requests)), 0),
		s.report.Check(name, "requests-of-the-registry", float64(len(s.Registry.Requests())), 0),
	), s.details.requests("policies-idle", requests, s.size)
}

// restartPolicies has a new process look at all that is installed, and at its signatures.
func (s *signed) restartPolicies(ctx context.Context) (over, err error) {
	s.Registry.ResetRequests()
	requests, err := s.restartUnchanged(ctx)
	if err != nil {
		return nil, err
	}
	used, err := s.usage()
	if err != nil {
		return nil, err
	}
	name := s.called(fmt.Sprintf("restart over %%d extensions under %d policies", len(s.policies)))
	return errors.Join(
		s.report.Tell(name, "cpu-seconds", used.CPUSeconds),
		s.report.Check(name, "writes", float64(writes(requests)), crowdRestartWritesLimit),
		// What the tag of the catalog stands for is asked, under another path.
		s.report.Check(name, "requests-of-the-registry", float64(s.Registry.Count("/crowd-")), 0),
	), nil
}

// changePolicy takes the key out of one policy: what that is for says so, and nothing else is
// touched.
func (s *signed) changePolicy(ctx context.Context) (over, err error) {
	_, another, err := signing.NewKey()
	if err != nil {
		return nil, err
	}
	s.Registry.ResetRequests()
	before, err := s.usage()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: environment.SystemNamespace, Name: s.policies[0]}}
	was := client.MergeFrom(secret.DeepCopy())
	secret.Data = map[string][]byte{keyName: another}
	if err := s.Admin.Patch(ctx, secret, was); err != nil {
		return nil, err
	}
	err = s.await(ctx, s.sharersOf(0), func(extension *ocv1.ClusterExtension) bool {
		ready := meta.FindStatusCondition(extension.Status.Conditions, ocv1.TypeReady)
		return ready != nil && strings.Contains(ready.Message, "its image is not accepted")
	})
	wall := time.Since(began)
	if err := errors.Join(err, s.quiet(ctx)); err != nil {
		return nil, err
	}
	after, err := s.usage()
	if err != nil {
		return nil, err
	}
	name := s.called(fmt.Sprintf("the key of one of %d policies replaced, %%d extensions", len(s.policies)))
	return errors.Join(
		s.report.Tell(name, "told-after-seconds", wall.Seconds()),
		s.report.Tell(name, "cpu-seconds", after.CPUSeconds-before.CPUSeconds),
		s.report.Check(name, "requests-of-the-registry", float64(len(s.Registry.Requests())), 10*sharers),
	), nil
}
