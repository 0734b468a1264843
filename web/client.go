package web

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/egretstream/egret/view"
)

const (
	mostAnswer = 64 << 20 // bytes of an answer, and of a line of one that goes on
	mostError  = 64 << 10
)

// A Client asks one node what it alone has: see NodePath. An error that is no *Error says
// that the node does not answer.
type Client struct {
	HTTP *http.Client
	Addr string // host:port
}

// Sample asks for the node's sample.
func (c *Client) Sample(ctx context.Context) (*view.Sample, error) {
	s := &view.Sample{}
	return s, c.get(ctx, "sample", nil, s)
}

// Errors is that of a Source, and so are the methods that follow.
func (c *Client) Errors(ctx context.Context, topology string) (all []view.Error, err error) {
	return all, c.get(ctx, of(topology, "errors"), nil, &all)
}

func (c *Client) Letters(ctx context.Context, topology, component string, n int) (all []view.Letter, err error) {
	return all, c.get(ctx, of(topology, "letters"), url.Values{"component": {component}, "n": {strconv.Itoa(n)}}, &all)
}

func (c *Client) Settle(ctx context.Context, topology string, ids []string, replay bool) (*view.Effect, error) {
	do := settling{"drop", ids}
	if replay {
		do.Do = "replay"
	}
	e := &view.Effect{}
	return e, c.post(ctx, of(topology, "letters"), do, e)
}

func (c *Client) Tap(ctx context.Context, tap view.Tap, yield func(*view.Tapped) bool) error {
	q := url.Values{"component": {tap.Component}, "stream": {tap.Stream}, "where": {tap.Where}}
	if tap.Most != 0 {
		q.Set("most", strconv.FormatFloat(tap.Most, 'g', -1, 64))
	}
	r, err := c.do(ctx, http.MethodGet, of(tap.Topology, "tap"), q, nil)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	lines := bufio.NewScanner(r.Body)
	lines.Buffer(nil, mostAnswer)
	for lines.Scan() {
		t := &view.Tapped{}
		if err := json.Unmarshal(lines.Bytes(), t); err != nil {
			return c.strange(err)
		}
		if !yield(t) {
			return nil
		}
	}
	return lines.Err()
}

// Open is that of a NodeSource, and so is Places.
func (c *Client) Open(ctx context.Context, topology string, n int) (all []view.OpenTree, err error) {
	return all, c.get(ctx, of(topology, "open"), url.Values{"n": {strconv.Itoa(n)}}, &all)
}

func (c *Client) Places(ctx context.Context, topology string, sought []view.Sought) (all []view.OpenPlace, err error) {
	return all, c.post(ctx, of(topology, "places"), sought, &all)
}

func of(topology, what string) string { return "topologies/" + url.PathEscape(topology) + "/" + what }

func (c *Client) get(ctx context.Context, path string, q url.Values, into any) error {
	r, err := c.do(ctx, http.MethodGet, path, q, nil)
	if err != nil {
		return err
	}
	if err := read(r, into); err != nil {
		return c.strange(err)
	}
	return nil
}

func (c *Client) post(ctx context.Context, path string, what, into any) error {
	body, err := json.Marshal(what)
	if err != nil {
		return err
	}
	r, err := c.do(ctx, http.MethodPost, path, nil, bytes.NewReader(body))
	if err != nil {
		return err
	}
	if err := read(r, into); err != nil {
		return c.strange(err)
	}
	return nil
}

// read reads an answer to its end, so that its connection can be used again.
func read(r *http.Response, into any) error {
	defer r.Body.Close()
	body, err := io.ReadAll(io.LimitReader(r.Body, mostAnswer))
	if err != nil {
		return err
	}
	return json.Unmarshal(body, into)
}

func (c *Client) strange(err error) error {
	if _, broken := errors.AsType[*json.SyntaxError](err); !broken {
		if _, broken := errors.AsType[*json.UnmarshalTypeError](err); !broken {
			return err
		}
	}
	return fmt.Errorf("node %s gives an answer that cannot be read: is it another version of Egret? (%w)", c.Addr, err)
}

// do returns an answer that is no error.
func (c *Client) do(ctx context.Context, method, path string, q url.Values, body io.Reader) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, "http://"+c.Addr+NodePath+path+"?"+q.Encode(), body)
	if err != nil {
		return nil, err
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	answer, err := c.HTTP.Do(r)
	if err != nil {
		if u, is := errors.AsType[*url.Error](err); is {
			err = u.Err
		}
		return nil, err
	}
	if answer.StatusCode == http.StatusOK {
		return answer, nil
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, mostError))
	if err != nil {
		return nil, err
	}
	var e errorAnswer
	if json.Unmarshal(text, &e) == nil && e.Error != nil {
		return nil, e.Error
	}
	return nil, fmt.Errorf("node %s answers %s: is it another version of Egret? (%s)", c.Addr, answer.Status, short(strings.TrimSpace(string(text))))
}
