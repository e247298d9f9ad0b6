package status

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/test/judge"
)

// tableWatch asks for what kubectl get --watch asks for: rows, here with all of
// the object beside each of them.
const (
	tableAccept = "application/json;as=Table;g=meta.k8s.io;v=v1"
	tableWatch  = "?watch=true&includeObject=Object"
)

// startPause is between tries to watch a kind that is not ready to be watched.
const startPause = 100 * time.Millisecond

// Recorder captures all states of all extensions and catalogs, from its start on.
type Recorder struct {
	watches sync.WaitGroup

	mu       sync.Mutex
	captures map[string][]Capture
	err      error
}

// StartRecorder watches until the context ends.
func StartRecorder(ctx context.Context, config *rest.Config) (*Recorder, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("starting the recorder: %w", err)
	}
	r := &Recorder{captures: map[string][]Capture{}}
	for _, resource := range []string{"clusterextensions", "clustercatalogs"} {
		url := strings.Join([]string{config.Host, "apis", ocv1.GroupVersion.Group, ocv1.GroupVersion.Version, resource}, "/")
		stream, err := watch(ctx, client, url)
		if err != nil {
			return nil, fmt.Errorf("watching %s: %w", resource, err)
		}
		r.watches.Go(func() { r.follow(ctx, stream) })
	}
	return r, nil
}

func watch(ctx context.Context, client *http.Client, url string) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+tableWatch, http.NoBody)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", tableAccept)
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	switch response.StatusCode {
	case http.StatusOK:
		return response.Body, nil
	case http.StatusTooManyRequests:
		// The kind is so new that the API server has not read any of it.
		if err := response.Body.Close(); err != nil {
			return nil, err
		}
		time.Sleep(startPause)
		return watch(ctx, client, url)
	}
	return nil, errors.Join(errors.New(response.Status), response.Body.Close())
}

// follow takes in what a watch tells, until it ends.
func (r *Recorder) follow(ctx context.Context, stream io.ReadCloser) {
	defer func() { _ = stream.Close() }() // was only read
	decoder := json.NewDecoder(stream)
	var columns []metav1.TableColumnDefinition
	for {
		var event struct {
			Type   string       `json:"type"`
			Object metav1.Table `json:"object"`
		}
		err := decoder.Decode(&event)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			// They come with the first event only.
			if len(event.Object.ColumnDefinitions) > 0 {
				columns = event.Object.ColumnDefinitions
			}
			err = r.take(ctx, event.Type, columns, event.Object.Rows)
		}
		if err != nil {
			r.fail(fmt.Errorf("a watch of statuses ended: %w", err))
			return
		}
	}
}

func (r *Recorder) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = errors.Join(r.err, err)
}

func (r *Recorder) take(ctx context.Context, event string, columns []metav1.TableColumnDefinition, rows []metav1.TableRow) error {
	now := time.Now()
	if event != "ADDED" && event != "MODIFIED" {
		if event == "DELETED" {
			return nil // was told before, with a deletionTimestamp
		}
		return fmt.Errorf("it tells of %s", event)
	}
	for _, row := range rows {
		object := &unstructured.Unstructured{}
		if err := json.Unmarshal(row.Object.Raw, object); err != nil {
			return err
		}
		reading, err := judge.Read(ctx, object)
		if err != nil {
			return err
		}
		capture := Capture{Reading: reading, At: now, Row: map[string]string{}}
		for i, column := range columns {
			if column.Priority == 0 && row.Cells[i] != nil {
				capture.Row[strings.ToUpper(column.Name)] = fmt.Sprint(row.Cells[i])
			} else if column.Priority == 0 {
				capture.Row[strings.ToUpper(column.Name)] = ""
			}
		}
		key := recordKey(object.GetKind(), object.GetName())
		r.mu.Lock()
		r.captures[key] = append(r.captures[key], capture)
		r.mu.Unlock()
	}
	return nil
}

func recordKey(kind, name string) string { return kind + "/" + name }

// Captures are those of an object until now, from its creation on.
func (r *Recorder) Captures(kind, name string) ([]Capture, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clip(r.captures[recordKey(kind, name)]), r.err
}

// Wait returns when the watches have ended, after the context has.
func (r *Recorder) Wait() { r.watches.Wait() }
