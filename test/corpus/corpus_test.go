package corpus_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/test/environment"
)

// seed makes the same samples in each run.
const seed = 1

const definition = "CustomResourceDefinition"

// TestCorpus installs every package at the lowest version that can be installed,
// all of them at once, repairs it, upgrades it to each of the following versions
// in turn, and uninstalls it. Before each installation and upgrade one right is
// missing. A controller that is started in between writes nothing.
func TestCorpus(t *testing.T) {
	t.Parallel()
	families := readCorpus(t)
	s := startSuite(t)
	s.makeForeignKinds(t)
	s.publish(t, families)
	controller := s.startController(t)

	crew := make(map[string]*operatorPackage, len(families))
	for _, family := range families {
		crew[family.name()] = &operatorPackage{suite: s, family: family, random: randomFor(family.name())}
	}
	each := func(name string, what func(*operatorPackage, *testing.T)) {
		together(t, name, families, func(t *testing.T, family family) { what(crew[family.name()], t) })
	}
	each("prepare", (*operatorPackage).prepare)
	s.createAll(t, crew)
	each("install", (*operatorPackage).install)
	each("repair", (*operatorPackage).repair)
	each("upgrade", (*operatorPackage).upgrade)
	controller = s.restart(t, controller, crew)
	each("uninstall", (*operatorPackage).uninstall)
	s.nothingLeft(t)
	if err := controller.Stop(); err != nil {
		t.Error(err)
	}
	s.checkSilence(t)
	s.checkForecasts(t)
}

// randomFor depends on nothing but the package, whatever else is tested.
func randomFor(name string) *rand.Rand {
	hash := fnv.New64()
	_, _ = hash.Write([]byte(name)) // never fails
	return rand.New(rand.NewPCG(seed, hash.Sum64()))
}

// operatorPackage is a package on the cluster.
type operatorPackage struct {
	*suite

	family family
	random *rand.Rand

	extension *ocv1.ClusterExtension
	current   *revision
	granted   grants
	created   time.Time

	// short is granted at first.
	short   grants
	missing *omission
}

// first is the version to begin with: the lowest that can be installed, or the first
// of all if there is none.
func (p *operatorPackage) first() revision {
	if installable := p.family.installable(); len(installable) > 0 {
		return installable[0]
	}
	return p.family[0]
}

func (p *operatorPackage) prepare(t *testing.T) {
	first := p.first()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: first.pkg}}
	if err := p.Admin.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	p.extension = environment.Extension(first.pkg, first.pkg, installer, first.pinned)
	if first.err != nil {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: first.pkg, Name: installer}}
		if err := p.Admin.Create(t.Context(), account); err != nil {
			t.Fatal(err)
		}
		return
	}
	p.granted = p.printedGrants(t, first, nil)
	p.short = p.granted
	if left, found := p.granted.sampled(p.random); found && uninstallable[first.String()] == "" {
		p.missing, p.short = &left, p.granted.without(left)
	}
	p.put(t, nil, p.short, p.missing)
}

// createAll makes all extensions at once.
func (s *suite) createAll(t *testing.T, crew map[string]*operatorPackage) {
	t.Helper()
	var group errgroup.Group
	for _, p := range crew {
		group.Go(func() error {
			p.created = time.Now()
			return s.Admin.Create(t.Context(), p.extension)
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}

func (p *operatorPackage) install(t *testing.T) {
	first := p.first()
	if reason := cmp.Or(uninstallable[first.String()], unrenderable[first.String()]); reason != "" {
		p.refused(t, first, reason)
		return
	}
	if p.missing != nil {
		p.denied(t, first, p.granted.lines(*p.missing))
		if thorough[first.pkg] != "" {
			p.lackInTurn(t, first)
		}
		p.wasSilent(first, p.created)
	}
	begin := p.granted
	if thorough[first.pkg] != "" {
		begin = p.granted.unwatched()
	}
	p.put(t, p.short, begin, nil)
	if p.missing != nil {
		p.awaitAccess(t, p.granted[p.missing.document].object, p.missing.parts[0], true)
		p.nudge(t)
	}
	p.installed(t, first)
	p.put(t, begin, p.granted, nil)
	p.current = &first
}

// thorough are packages that are refused without each of their rules in turn, and
// installed without those to watch, with what is special about them.
var thorough = map[string]string{
	"webhook-operator":       "webhooks of all three kinds",
	"cluster-logging":        "roles in its namespace",
	"submariner":             "cluster roles of its own making",
	"strimzi-kafka-operator": "many definitions",
	"THEEXTERNAL":            "bindings to roles of others",
}

// lackInTurn has one rule after the other missing, as a whole.
func (p *operatorPackage) lackInTurn(t *testing.T, r revision) {
	t.Helper()
	for _, left := range p.granted.omissions() {
		short := p.granted.without(left)
		p.put(t, p.short, short, &left)
		p.short = short
		p.nudge(t)
		p.denied(t, r, p.granted.lines(left))
	}
}

// wasSilent notes that nothing may have been written for a revision until now.
func (s *suite) wasSilent(r revision, since time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.silent = append(s.silent, silence{revision: r, from: since, to: time.Now()})
}

// repair deletes one of the objects, which comes back.
func (p *operatorPackage) repair(t *testing.T) {
	if p.current == nil {
		t.Skip("the package is not installed, see the tables")
	}
	if thorough[p.family.name()] != "" {
		t.Skip("it was installed without the rights to watch: what is deleted comes back within minutes, not seconds")
	}
	// Webhook configurations wait for a ready pod, which some packages never have here.
	objects := slices.DeleteFunc(slices.Clone(p.current.objects), func(o *unstructured.Unstructured) bool {
		group := o.GroupVersionKind().Group
		return group == apiextensionsv1.GroupName || group == admissionregistrationv1.GroupName
	})
	if len(objects) == 0 {
		t.Skip("the bundle has no objects but definitions and webhooks")
	}
	object := objects[p.random.IntN(len(objects))].DeepCopy()
	key := client.ObjectKeyFromObject(object)
	if err := p.Admin.Get(t.Context(), key, object); err != nil {
		t.Fatal(err)
	}
	deleted := object.GetUID()
	if err := p.Admin.Delete(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	eventually(t, fmt.Sprintf("%s %s", object.GetKind(), key), func(ctx context.Context) error {
		if err := p.Admin.Get(ctx, key, object); err != nil {
			return err
		}
		if object.GetUID() == deleted {
			return errors.New("it is not gone")
		}
		return nil
	})
}

func (p *operatorPackage) upgrade(t *testing.T) {
	first := p.first()
	for _, next := range p.family {
		if next.err != nil || next.order.Compare(first.order) <= 0 {
			continue
		}
		p.upgradeTo(t, next)
	}
}

// upgradeTo lacks a right first, unless the bundle is refused anyway.
func (p *operatorPackage) upgradeTo(t *testing.T, next revision) {
	t.Helper()
	full := p.granted
	if p.current == nil || uninstallable[next.String()] == "" {
		full = p.printedGrants(t, next, p.current)
	}
	begin := full
	left, found := full.sampled(p.random)
	reason := uninstallable[next.String()] + refusedUpgrades[next.String()]
	if found && reason == "" {
		begin = full.without(left)
		p.put(t, p.granted, begin, &left)
	} else {
		p.put(t, p.granted, begin, nil)
	}
	var plan *forecast
	if reason == "" && p.current != nil && *withPlans {
		plan = p.foresee(t, next)
	}
	since := time.Now()
	if err := p.Update(t.Context(), next.pkg, next.pinned); err != nil {
		t.Fatal(err)
	}
	p.granted = full
	if reason != "" {
		p.refused(t, next, reason)
		p.wasSilent(next, since)
		p.giveUp(t)
		return
	}
	if found {
		p.denied(t, next, full.lines(left))
		p.wasSilent(next, since)
		p.put(t, begin, full, nil)
		p.awaitAccess(t, full[left.document].object, left.parts[0], true)
		p.nudge(t)
	}
	p.installed(t, next)
	p.current = &next
	if plan != nil {
		p.cameTrue(*plan, since)
	}
}

// giveUp wants again what is installed: what has been refused could go on with the
// rights for the version after it.
func (p *operatorPackage) giveUp(t *testing.T) {
	t.Helper()
	if p.current == nil {
		return
	}
	if err := p.Update(t.Context(), p.family.name(), p.current.pinned); err != nil {
		t.Fatal(err)
	}
	p.installed(t, *p.current)
}

// nudge has the extension looked at again at once, by a change of its spec that
// means nothing: after some refusals, changes of rights are noticed within half a
// minute.
func (p *operatorPackage) nudge(t *testing.T) {
	t.Helper()
	err := p.Update(t.Context(), p.family.name(), func(extension *ocv1.ClusterExtension) {
		catalog := extension.Spec.Source.Catalog
		if version, found := strings.CutPrefix(catalog.Version, "="); found {
			catalog.Version = version
		} else {
			catalog.Version = "=" + catalog.Version
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

// restart has another controller look at all that is installed.
func (s *suite) restart(t *testing.T, running *environment.Controller, crew map[string]*operatorPackage) *environment.Controller {
	t.Helper()
	if err := running.Stop(); err != nil {
		t.Fatal(err)
	}
	var installed []string
	for name, p := range crew {
		if p.current != nil {
			installed = append(installed, name)
		}
	}
	began := time.Now()
	s.controllerLog = filepath.Join(s.logs, "restarted.log")
	started := s.startController(t)
	testkit.Eventually(t, restarting, "every package to be as wanted", func(context.Context) error {
		return environment.AsWanted(s.controllerLog, installed)
	})
	requests, err := environment.ControllerRequests(s.auditLog)
	if err != nil {
		t.Fatal(err)
	}
	for _, request := range requests {
		if pkg, isWrite := writeFor(request); isWrite && request.StageTimestamp.After(began) {
			t.Errorf("something of %s was written after the restart: %s", pkg, request)
		}
	}
	t.Logf("%d packages were looked at after a restart", len(installed))
	return started
}

func (p *operatorPackage) uninstall(t *testing.T) {
	if err := p.Admin.Delete(t.Context(), p.extension); err != nil {
		t.Fatal(err)
	}
	eventually(t, "ClusterExtension "+p.extension.Name, func(ctx context.Context) error {
		err := p.Admin.Get(ctx, client.ObjectKeyFromObject(p.extension), p.extension)
		if err == nil {
			return fmt.Errorf("it is still there, with finalizers %v", p.extension.Finalizers)
		}
		return client.IgnoreNotFound(err)
	})
}

// pinned makes an extension one of exactly this bundle.
func (r revision) pinned(extension *ocv1.ClusterExtension) {
	extension.Spec.Source.Catalog.Version = r.version
	extension.Spec.Source.Catalog.UpgradeConstraintPolicy = ocv1.UpgradeConstraintPolicySelfCertified
	extension.Spec.Config = nil
	if r.watch != "" {
		extension.Spec.Config = &ocv1.ClusterExtensionConfig{
			ConfigType: ocv1.ClusterExtensionConfigTypeInline,
			Inline:     &apiextensionsv1.JSON{Raw: []byte(r.config())},
		}
	}
}

// config is what the bundle is to be configured with.
func (r revision) config() string { return fmt.Sprintf(`{"watchNamespace":%q}`, r.watch) }

// nothingLeft waits until nothing belongs to any extension any more. To look at
// objects of every kind takes a minute while kinds go by the hundred, so these are
// waited for first.
func (s *suite) nothingLeft(t *testing.T) {
	t.Helper()
	testkit.Eventually(t, collecting, "definitions that are left", func(ctx context.Context) error {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind(definition))
		if err := s.Admin.List(ctx, list, client.HasLabels{environment.OwnerLabel}); err != nil {
			return err
		}
		left := slices.DeleteFunc(list.Items, func(o metav1.PartialObjectMetadata) bool { return environment.IsDying(definition, &o) })
		if len(left) > 0 {
			return fmt.Errorf("%d, the first is %s", len(left), left[0].Name)
		}
		return nil
	})
	testkit.Eventually(t, collecting, "what is left", func(ctx context.Context) error {
		left, err := s.Owned(ctx, environment.OwnerLabel)
		if err != nil {
			return err
		}
		secrets := &corev1.SecretList{}
		if err := s.Admin.List(ctx, secrets, client.InNamespace(environment.SystemNamespace)); err != nil {
			return err
		}
		for i := range secrets.Items {
			if strings.HasPrefix(string(secrets.Items[i].Type), "operatorframework.io/") {
				left = append(left, "record "+secrets.Items[i].Name)
			}
		}
		if len(left) > 0 {
			return fmt.Errorf("%d objects, %.1000v", len(left), left)
		}
		return nil
	})
}

// checkSilence finds what was written while something was amiss.
func (s *suite) checkSilence(t *testing.T) {
	t.Helper()
	requests, err := environment.ControllerRequests(s.auditLog)
	if err != nil {
		t.Fatal(err)
	}
	silences := map[string][]silence{}
	for _, silence := range s.silent {
		silences[silence.revision.pkg] = append(silences[silence.revision.pkg], silence)
	}
	writes := 0
	for _, request := range requests {
		pkg, isWrite := writeFor(request)
		if !isWrite {
			continue
		}
		writes++
		for _, silence := range silences[pkg] {
			if request.StageTimestamp.After(silence.from) && request.StageTimestamp.Before(silence.to) {
				t.Errorf("%s was written although it was refused: %s", silence.revision, request)
			}
		}
	}
	t.Logf("%d times nothing was to be written, of %d writes in all", len(s.silent), writes)
	if writes == 0 {
		t.Error("the audit log has no write at all: it is not what it should be")
	}
}

// writeFor is the package for which something is written: content, or a record of
// its release. Questions and rehearsals write nothing.
func writeFor(request environment.Request) (string, bool) {
	if !request.IsWrite() {
		return "", false
	}
	if request.ImpersonatedUser != nil {
		parts := strings.Split(request.ImpersonatedUser.Username, ":")
		return parts[2], len(parts) == 4
	}
	if !request.IsRecord() {
		return "", false
	}
	name, _ := strings.CutPrefix(request.ObjectRef.Name, "sh.helm.release.v1.")
	at := strings.LastIndex(name, ".v")
	return name[:max(at, 0)], true
}
