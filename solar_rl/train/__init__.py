"""Train a policy on a built dataset: stored candidates, stored log-probs, shaped advantages.

Nothing here is imported by ``import solar_rl``: torch, transformers and TRL come with the extra ``train``.
"""
