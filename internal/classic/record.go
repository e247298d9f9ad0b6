package classic

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// AnnotationRecord has a [Record] as JSON, on the extension of an operator that moves or has moved.
const AnnotationRecord = "olm.operatorframework.io/migration-record"

// maxRecord bounds a record in bytes: annotations of an object may come to 256 KiB together, and
// the specs that are backed up are among them.
const maxRecord = 128 << 10

// Mode is what becomes of a classic OLM that runs while operators move.
type Mode string

// Modes.
const (
	// Quiet stops the programs of classic OLM, and starts them again in the end.
	Quiet Mode = "quiet"
	// Live leaves them running: the ClusterServiceVersion goes without its finalizer, and without
	// the annotation by which conversions would be reset.
	Live Mode = "live"
	// Strip leaves them running, too, and the finalizer in place: objects in no namespace lose the labels by
	// which it would delete them.
	Strip Mode = "strip"
)

// Problem says why an operator cannot be moved in the mode; empty if it can. The finalizer, which [Strip] leaves in
// place, switches conversion off.
func (m Mode) Problem(op *Operator) string {
	if m == Strip && op.converts() {
		return fmt.Sprintf("%s converts custom resources, which classic OLM would stop in mode %s: use another --mode", op.Name, m)
	}
	return ""
}

// Record is what a move has found before its first write, and goes by from then on. Names
// prove nothing: what is deleted has the UID that was found.
type Record struct {
	// Invocation tells the moves of one extension from those of another.
	Invocation string `json:"invocation"`
	Mode       Mode   `json:"mode"`

	// Subscription and CSV are what the operator was managed by, with the marks that people have
	// put on the former. Its spec is in an annotation of its own.
	Subscription Ref               `json:"subscription"`
	Labels       map[string]string `json:"labels,omitempty"`
	Annotations  map[string]string `json:"annotations,omitempty"`
	CSV          Ref               `json:"csv"`

	// MakesAccount says that the ServiceAccount of the extension, with its rights, is made by the move: those that the
	// bundle of this image takes, and no other.
	MakesAccount bool   `json:"makesAccount,omitempty"`
	Image        string `json:"image,omitempty"`
	// Done says that the move has ended: what there is left to do with it is to take it back.
	Done bool `json:"done,omitempty"`

	// Deleted, Stays and Adopted are [Fates]. Subscription, CSV and the copies of the latter are not among the
	// first, as they go in steps of their own.
	Deleted []Ref `json:"deleted,omitempty"`
	Stays   []Ref `json:"stays,omitempty"`
	Adopted []Ref `json:"adopted,omitempty"`
	// Created is what the extension adds: it goes when the move is taken back.
	Created []Ref `json:"created,omitempty"`
	// Label is the one of all components of the operator. What is to be taken over gets it where no other mark says
	// whose it is: the controller goes by marks alone, and classic OLM drops some when it carries out an
	// InstallPlan a second time.
	Label string `json:"label,omitempty"`
}

// Ref is an object that was found, or one that there is not yet, whose UID is empty.
type Ref struct {
	object.Reference

	UID types.UID `json:"uid,omitempty"`
}

// RefOf refers to an object as it was found.
func RefOf(one Object) Ref {
	return Ref{Reference: object.ReferenceTo(one.Key), UID: one.Meta.UID}
}

// lastApplied is where kubectl keeps a whole object once more.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// Record is that of a move of the operator, of whose objects becomes what is said, and for which the extension
// creates others.
func (o *Operator) Record(invocation string, mode Mode, fates Fates, created []object.Key) (Record, error) {
	if o.Subscription == nil || o.CSV == nil {
		return Record{}, errors.New("nothing is installed that could move")
	}
	record := Record{Invocation: invocation, Mode: mode, Label: o.ComponentLabel(), Labels: o.Subscription.Labels, Annotations: map[string]string{}}
	for name, value := range o.Subscription.Annotations {
		if name != lastApplied {
			record.Annotations[name] = value
		}
	}
	record.Subscription = Ref{Reference: object.ReferenceTo(o.subscriptionKey()), UID: o.Subscription.UID}
	record.CSV = Ref{Reference: object.ReferenceTo(o.csvKey()), UID: o.CSV.UID}
	copies := map[types.UID]bool{}
	for _, one := range o.Copies {
		copies[one.Meta.UID] = true
	}
	for _, one := range fates.Deleted {
		if ref := RefOf(one); ref != record.Subscription && ref != record.CSV && !copies[ref.UID] {
			record.Deleted = append(record.Deleted, ref)
		}
	}
	for _, one := range fates.Stays {
		record.Stays = append(record.Stays, RefOf(one))
	}
	for _, one := range fates.Adopted {
		record.Adopted = append(record.Adopted, RefOf(one))
	}
	for _, key := range created {
		record.Created = append(record.Created, Ref{Reference: object.ReferenceTo(key)})
	}
	return record, nil
}

// Text is the record as an annotation has it.
func (r Record) Text() (string, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return "", err
	}
	if len(text) > maxRecord {
		return "", fmt.Errorf("the operator consists of more objects than can be noted: they come to %d bytes, and %d are allowed", len(text), maxRecord)
	}
	return string(text), nil
}

// Finished is the record of a move that has ended. Of what was deleted it has the rights: who takes the move
// back waits until classic OLM has given them again. It has what was taken over, too, which loses the marks of the
// extension then.
func (r Record) Finished() Record {
	rights := slices.DeleteFunc(slices.Clone(r.Deleted), func(ref Ref) bool { return !ref.IsRights() })
	r.Done, r.Deleted, r.Stays = true, rights, nil
	return r
}

// IsRights says that the object is a role or a binding.
func (r Ref) IsRights() bool { return r.Group == rbacv1.GroupName }

// RecordOf is the record of an extension; nil if it has none. The error says that
// somebody has damaged it, or has written one that no move writes.
func RecordOf(ext *ocv1.ClusterExtension) (*Record, error) {
	text := ext.Annotations[AnnotationRecord]
	if text == "" {
		return nil, nil
	}
	record := &Record{}
	if err := json.Unmarshal([]byte(text), record); err != nil || record.Subscription.Name == "" || record.CSV.Name == "" {
		return nil, fmt.Errorf("annotation %s of ClusterExtension %q does not say which Subscription and ClusterServiceVersion it is about: put it back from the backup", AnnotationRecord, ext.Name)
	}
	if problem := record.problem(ext); problem != "" {
		return nil, fmt.Errorf("annotation %s of ClusterExtension %q is about %s: no move has written it; see who has, and remove the annotation; to delete the extension would delete all that it has installed", AnnotationRecord, ext.Name, problem)
	}
	return record, nil
}
