package object

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// WithoutValues is an error about an object of a kind, without what it quotes of the object:
// whatever is in a Secret, and of others what is an object, long, of several lines, or in a
// field whose name tells of secrets. The fields and what is wrong with them stay. An error that
// quotes nothing of that is given as it is; any other one wraps the error, and is the
// [apierrors.APIStatus] of an answer without the values.
func WithoutValues(of schema.GroupKind, err error) error {
	if err == nil {
		return nil
	}
	text, answer := err.Error(), apierrors.APIStatus(nil)
	if !errors.As(err, &answer) {
		if told := withoutContent(text); told != text {
			return &discreetError{text: told, err: err}
		}
		return err
	}
	before := answer.Status()
	after := discreetStatus(of, before)
	told := withoutContent(strings.ReplaceAll(text, before.Message, after.Message))
	if told == text && after.Message == before.Message {
		return err
	}
	return &discreetAnswerError{discreetError: discreetError{text: told, err: err}, status: after}
}

type discreetError struct {
	text string
	err  error
}

func (e *discreetError) Error() string { return e.text }
func (e *discreetError) Unwrap() error { return e.err }

type discreetAnswerError struct {
	discreetError

	status metav1.Status
}

// Status is the answer without the values.
func (e *discreetAnswerError) Status() metav1.Status { return e.status }

// verdict matches the words of whoever has denied a request by admission. What comes after
// them can be anything.
var verdict = regexp.MustCompile(`(?s)(denied (?:the )?request).*`)

func discreetStatus(of schema.GroupKind, status metav1.Status) metav1.Status {
	told := *status.DeepCopy()
	if of == SecretKind {
		told.Message = verdict.ReplaceAllString(told.Message, "$1")
	}
	var lines []string
	isQuoted := true
	if told.Details != nil {
		for i := range told.Details.Causes {
			cause := &told.Details.Causes[i]
			whole := cause.Message
			cause.Message = withoutValue(of, *cause)
			lines = append(lines, fmt.Sprintf("%s: %s", cause.Field, cause.Message))
			if whole != cause.Message {
				isQuoted = isQuoted && strings.Contains(told.Message, whole)
				told.Message = strings.ReplaceAll(told.Message, whole, cause.Message)
			}
		}
	}
	if !isQuoted { // in words of its own, where the values cannot be found
		told.Message = fmt.Sprintf("it is refused as %q: %s", status.Reason, strings.Join(lines, ", "))
	}
	told.Message = withoutContent(told.Message)
	return told
}

// withValue are the types of causes that have a value between their type and what is wrong.
var withValue = []field.ErrorType{
	field.ErrorTypeInvalid, field.ErrorTypeNotSupported, field.ErrorTypeNotFound, field.ErrorTypeDuplicate,
	field.ErrorTypeTooMany, field.ErrorTypeTooFew,
}

// wrongType is the end of what a decoder says. It has no value.
var wrongType = regexp.MustCompile(`json: cannot unmarshal \w+ into Go [\w. ]+ of type [\w.\[\]*]+$`)

// withoutValue is what a cause says, see [WithoutValues].
func withoutValue(of schema.GroupKind, cause metav1.StatusCause) string {
	for _, kind := range withValue {
		rest, found := strings.CutPrefix(cause.Message, kind.String()+": ")
		if !found {
			continue
		}
		value, detail, isKnown := cutValue(rest)
		switch {
		case isKnown && of != SecretKind && !isTelling(cause.Field, value):
			return cause.Message
		case !isKnown && of != SecretKind:
			return withoutContent(cause.Message)
		case !isKnown:
			detail = wrongType.FindString(rest)
		}
		return strings.TrimSuffix(kind.String()+": "+withoutContent(detail), ": ")
	}
	if of == SecretKind && !isPlain(cause.Message) {
		return string(cause.Type)
	}
	return withoutContent(cause.Message)
}

// isPlain says that a cause begins with a type that comes without a value.
func isPlain(message string) bool {
	for _, kind := range []field.ErrorType{
		field.ErrorTypeRequired, field.ErrorTypeForbidden, field.ErrorTypeTooLong, field.ErrorTypeTooShort, field.ErrorTypeInternal,
	} {
		if strings.HasPrefix(message, kind.String()) {
			return true
		}
	}
	return false
}

// cutValue divides what follows the type of a cause. The value is quoted as Go does it, or JSON.
func cutValue(rest string) (value, detail string, isKnown bool) {
	value, err := strconv.QuotedPrefix(rest)
	end := len(value)
	if err != nil {
		decoder := json.NewDecoder(strings.NewReader(rest))
		if decoder.Decode(new(json.RawMessage)) != nil {
			return "", "", false
		}
		end = int(decoder.InputOffset())
	}
	if detail, found := strings.CutPrefix(rest[end:], ": "); found || end == len(rest) {
		return rest[:end], detail, true
	}
	return "", "", false
}

// maxTold is how long a value may be that is told, in bytes as it is quoted.
const maxTold = 128

// secretFields are names of fields that tell of secrets.
var secretFields = regexp.MustCompile(`(?i)pass|token|secret|credential|key|\benv\[\d+\]\.value$`)

// isTelling says that a value is nothing to be told.
func isTelling(path, value string) bool {
	text := strings.TrimLeft(value, `"`)
	return len(value) > maxTold || strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[") || strings.HasPrefix(text, "map[") ||
		strings.Contains(value, `\n`) || secretFields.MatchString(path)
}

// contents are objects as they stand in errors: as JSON, as a map of Go, and the Pods whose
// changes an API server tells.
var contents = regexp.MustCompile(`(?s)\{\\*".*\}|\bmap\[[^\]\s:]+:.*\]|[\w.&*+-]*PodSpec\{.*\}`)

func withoutContent(text string) string { return contents.ReplaceAllString(text, "{…}") }
