package crash

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/flowfabric/flowfabric-go/benchmarks/driver"
)

var asynqPlain = system{
	name:  "asynq",
	serve: redisServer, talk: respDialect, open: openAsynq, version: asynqVersion,
	work: func(ctx context.Context, url, service string) error { return workAsynq(ctx, url, service, false) },
}

var asynqSaved = system{
	name:  "asynq-steps",
	serve: redisServer, talk: respDialect, open: openAsynq, version: asynqVersion,
	work: func(ctx context.Context, url, service string) error { return workAsynq(ctx, url, service, true) },
}

func asynqVersion() string { return driver.ModuleVersion("github.com/hibiken/asynq") }

const asynqTask = "agent"

// workAsynq runs a server. With saved the conversation is kept between attempts.
func workAsynq(ctx context.Context, url, service string, saved bool) error {
	own := redis.NewClient(&redis.Options{Network: "unix", Addr: socket(url)})
	defer own.Close()
	worker := asynq.NewServer(asynq.RedisClientOpt{Network: "unix", Addr: socket(url)}, asynq.Config{Concurrency: 1,
		LogLevel: asynq.FatalLevel, DelayedTaskCheckInterval: 100 * time.Millisecond,
		RetryDelayFunc: func(int, error, *asynq.Task) time.Duration { return 0 }})
	return worker.Run(asynq.HandlerFunc(func(ctx context.Context, t *asynq.Task) error {
		messages := []message{question}
		if saved {
			kept, err := load(ctx, own)
			if err != nil {
				return err
			}
			messages = append(messages, kept...)
		}
		for !over(messages) {
			m, err := next(ctx, service, messages, func(token string) error {
				return own.XAdd(ctx, &redis.XAddArgs{Stream: keyTokens, Values: []string{field, token}}).Err()
			})
			if err != nil {
				return err
			}
			if saved {
				text, err := json.Marshal(m)
				if err != nil {
					return err
				}
				if err := own.RPush(ctx, keyTranscript, text).Err(); err != nil {
					return err
				}
			}
			messages = append(messages, m)
		}
		_, err := t.ResultWriter().Write([]byte(messages[len(messages)-1].Text))
		return err
	}))
}

// load reads the conversation that an attempt before this one has kept.
func load(ctx context.Context, c *redis.Client) (out []message, err error) {
	kept, err := c.LRange(ctx, keyTranscript, 0, -1).Result()
	for _, text := range kept {
		var m message
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, err
}

type asynqCaller struct {
	client    *asynq.Client
	inspector *asynq.Inspector
	redis     rueidis.Client
	id        string
}

func openAsynq(_ context.Context, s driver.Server) (caller, error) {
	to := asynq.RedisClientOpt{Network: "unix", Addr: socket(s.URL())}
	own, err := dialRedis(s.URL())
	if err != nil {
		return nil, err
	}
	return &asynqCaller{client: asynq.NewClient(to), inspector: asynq.NewInspector(to), redis: own}, nil
}

func (c *asynqCaller) submit(ctx context.Context) error {
	info, err := c.client.EnqueueContext(ctx, asynq.NewTask(asynqTask, nil), asynq.Retention(time.Hour))
	if err == nil {
		c.id = info.ID
	}
	return err
}

func (c *asynqCaller) result(ctx context.Context) (out string, err error) {
	return out, poll(ctx, func() (bool, error) {
		info, err := c.inspector.GetTaskInfo("default", c.id)
		if err != nil {
			return false, err
		}
		if info.State == asynq.TaskStateArchived {
			return false, errors.New("archived: " + info.LastErr)
		}
		out = string(info.Result)
		return info.State == asynq.TaskStateCompleted, nil
	})
}

func (c *asynqCaller) pass(ctx context.Context) error {
	long := fmt.Sprint(time.Now().Add(-time.Hour).Unix())
	return c.redis.Do(ctx, c.redis.B().Arbitrary("ZADD").Keys("asynq:{default}:lease").Args("XX", long, c.id).
		Build()).Error()
}

func (c *asynqCaller) shown(ctx context.Context) ([]string, int, error) {
	tokens, err := readTokens(ctx, c.redis, keyTokens, func(f map[string]string) string { return f[field] })
	return tokens, 0, err
}

func (c *asynqCaller) close() {
	_ = c.client.Close()
	_ = c.inspector.Close()
	c.redis.Close()
}

// poll asks again and again until it is done.
func poll(ctx context.Context, done func() (bool, error)) error {
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
