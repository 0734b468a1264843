package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	strict "github.com/go-json-experiment/json"
)

const (
	mostBody = 256 << 10        // bytes of a request
	bodyTime = 10 * time.Second // for them to come
)

// A statusError is an Error with a status that is not its code's.
type statusError struct {
	status int
	err    *Error
}

func (e *statusError) Error() string { return e.err.Text }
func (e *statusError) Unwrap() error { return e.err }

// statuses are those of codes.
var statuses = map[string]int{
	Unknown: http.StatusNotFound, Invalid: http.StatusBadRequest, Forbidden: http.StatusForbidden, NoToken: http.StatusUnauthorized,
	Refused: http.StatusConflict, NoQuorum: http.StatusServiceUnavailable, NotHere: http.StatusNotFound, Busy: http.StatusTooManyRequests,
	Broken: http.StatusServiceUnavailable,
}

// told returns what is said of an error: of one of the source itself, that it is one.
func told(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return &Error{Broken, "there was no answer in time: try again"}
	}
	return &Error{Broken, err.Error()}
}

// An errorAnswer is the body of an answer that is an error.
type errorAnswer struct {
	Error *Error `json:"error"`
}

// fail answers with an error.
func fail(w http.ResponseWriter, err error) {
	e := told(err)
	status := statuses[e.Code]
	if s, ok := errors.AsType[*statusError](err); ok {
		status = s.status
	}
	if status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "5")
	}
	answer(w, status, errorAnswer{e})
}

// answer answers with JSON.
func answer(w http.ResponseWriter, status int, v any) {
	text, err := json.Marshal(v)
	if err != nil { // a mistake of Egret's own
		status, text = http.StatusInternalServerError, []byte(`{"error":{"code":"`+Broken+`","text":"the answer has no JSON (this is a bug in Egret)"}}`)
	}
	written(w, status, text)
}

func written(w http.ResponseWriter, status int, text []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n')) // who does not hear it has gone
}

func plain(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text+"\n")
}

// listed answers with a list, which is never null.
func listed[T any](w http.ResponseWriter, all []T, err error) error {
	if err != nil {
		return err
	}
	if all == nil {
		all = []T{}
	}
	answer(w, http.StatusOK, all)
	return nil
}

// decode reads the body of a request. What is not known in it is refused: it was meant to
// do something.
func decode(w http.ResponseWriter, r *http.Request, into any) error {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return &statusError{http.StatusUnsupportedMediaType, &Error{Invalid, "send JSON, with Content-Type: application/json"}}
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(bodyTime)) // where there is one
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostBody))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return &statusError{http.StatusRequestEntityTooLarge, &Error{Invalid, fmt.Sprintf("the body has more than %d bytes", mostBody)}}
	} else if err != nil {
		return &Error{Invalid, "the body cannot be read"}
	}
	_ = control.SetReadDeadline(time.Time{})
	if err := strict.Unmarshal(body, into, strict.RejectUnknownMembers(true)); err != nil {
		return &Error{Invalid, "the body is not what is expected here: " + short(strings.TrimPrefix(err.Error(), "json: "))}
	}
	return nil
}

// query returns the parameters of a request, which are among names and given once.
func query(r *http.Request, names ...string) (url.Values, error) {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, &Error{Invalid, "the query cannot be read: " + short(err.Error())}
	}
	for name, values := range q {
		switch {
		case !slices.Contains(names, name) && len(names) == 0:
			return nil, &Error{Invalid, fmt.Sprintf("there is no parameter %q: %s has none", short(name), short(r.URL.Path))}
		case !slices.Contains(names, name):
			return nil, &Error{Invalid, fmt.Sprintf("there is no parameter %q: use %s", short(name), strings.Join(names, ", "))}
		case len(values) > 1:
			return nil, &Error{Invalid, fmt.Sprintf("%s is given %d times: give it once", name, len(values))}
		}
	}
	return q, nil
}

// number returns the parameter n, from 1 to most; def if it is not given.
func number(q url.Values, def, most int) (int, error) {
	text := q.Get("n")
	if text == "" {
		return def, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return 0, &Error{Invalid, fmt.Sprintf("n is %q: use a number from 1 to %d", short(text), most)}
	}
	return n, nil
}

// short keeps what others have sent from filling an answer.
func short(s string) string {
	const most = 200
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "..."
	}
	return s
}

type errorLog struct{ log *slog.Logger }

func (l errorLog) Println(v ...any) {
	l.log.Warn("metrics: " + strings.TrimSuffix(fmt.Sprintln(v...), "\n"))
}
