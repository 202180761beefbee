-- Every column of rewards, with what the question needs from episodes and steps.
CREATE OR REPLACE VIEW scored AS
SELECT r.*, e.goal, e.source, e.platform, e.split, e.ref_len, s.instruction, s.image_sha256
FROM rewards AS r
LEFT JOIN episodes AS e USING (episode_id)
LEFT JOIN steps AS s USING (episode_id, step_index);

-- One row per failed trajectory, with the answer that broke it.
CREATE OR REPLACE VIEW failures AS
SELECT t.*, r.raw_score, c.completion
FROM trajectories AS t
LEFT JOIN rewards AS r
  ON r.episode_id = t.episode_id AND r.step_index = t.first_failure_step AND r.candidate_index = t.candidate_index
LEFT JOIN candidates AS c
  ON c.episode_id = t.episode_id AND c.step_index = t.first_failure_step AND c.candidate_index = t.candidate_index
WHERE t.first_failure_step IS NOT NULL;

-- One row per group of GRPO (the candidates in play at one step), with the reason why it teaches nothing.
-- A spread below 1e-12 is rounding: rewards are sums of float64.
CREATE OR REPLACE VIEW grpo_groups AS
SELECT
  episode_id,
  step_index,
  count(reward)::INTEGER AS n,
  fsum(reward) / nullif(count(reward), 0) AS mean_reward,
  max(reward) - min(reward) AS spread,
  CASE
    WHEN count(reward) = 0 THEN 'nothing in play'
    WHEN count(reward) = 1 THEN 'one candidate'
    WHEN max(reward) - min(reward) <= 1e-12 THEN 'no spread'
  END AS dropped_reason
FROM rewards
GROUP BY episode_id, step_index;
