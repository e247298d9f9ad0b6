package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// gather is how long changes are gathered before they are sent: a rollout of many
// extensions makes hundreds of them in a second.
const gather = 250 * time.Millisecond

// update is what a page is told that follows changes.
type update struct {
	// Rows are new or changed, in the order of the table.
	Rows []updatedRow `json:"rows,omitempty"`
	// Gone are names.
	Gone []string `json:"gone,omitempty"`
	// All is how many extensions there are.
	All int `json:"all"`
}

type updatedRow struct {
	Name string `json:"name"`
	HTML string `json:"html"`
	// Before is the name of the row that follows; empty for none.
	Before string `json:"before,omitempty"`
}

// follow sends changes of the table of extensions as server-sent events, for as long as the
// page is open. It begins from the number of changes that the page was made after: if there
// were others since, all rows are sent.
func (c *console) follow(w http.ResponseWriter, r *http.Request) {
	since := r.URL.Query().Get("since")
	if last := r.Header.Get("Last-Event-ID"); last != "" {
		since = last
	}
	w.Header().Set("Content-Type", "text/event-stream")
	stream := http.NewResponseController(w)
	news, next := c.Live.News()
	sent := map[string]string{}
	if since == strconv.FormatUint(news, 10) {
		_, sent = c.updateFrom(sent)
	}
	for {
		changed, now := c.updateFrom(sent)
		sent = now
		if err := stream.SetWriteDeadline(time.Now().Add(sendTimeout)); err != nil { //nolint:forbidigo // deadlines are of the real clock
			return
		}
		if err := send(w, news, changed); err != nil || stream.Flush() != nil {
			return
		}
		select {
		case <-next:
		case <-r.Context().Done():
			return
		}
		select {
		case <-time.After(gather):
		case <-r.Context().Done():
			return
		}
		news, next = c.Live.News()
	}
}

// updateFrom is what has changed since a page was sent these rows, and the rows of now.
func (c *console) updateFrom(sent map[string]string) (update, map[string]string) {
	rows := c.rows(c.Live.Extensions().Items)
	now := make(map[string]string, len(rows))
	changed := update{All: len(rows)}
	for i, row := range rows {
		html, err := c.rowHTML(row)
		if err != nil {
			continue
		}
		now[row.Name] = html
		if sent[row.Name] == html {
			continue
		}
		one := updatedRow{Name: row.Name, HTML: html}
		if i+1 < len(rows) {
			one.Before = rows[i+1].Name
		}
		changed.Rows = append(changed.Rows, one)
	}
	for name := range sent {
		if _, there := now[name]; !there {
			changed.Gone = append(changed.Gone, name)
		}
	}
	return changed, now
}

func send(w http.ResponseWriter, news uint64, changed update) error {
	data, err := json.Marshal(changed)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "id: %d\ndata: %s\n\n", news, data)
	return err
}
