"""A small GPT-2 of Hugging Face's `transformers`, which must be installed with `torch`: gpt2/config.json and
gpt2/model.safetensors as save_pretrained leaves them, and in gpt2/answers.txt what it makes of tokens: lines "tokens
NUMBERS", "logits NUMBERS", "loss NUMBER" (of each token's follower), "norm NAME NUMBER" of each parameter's gradient, and
"greedy NUMBERS", the likeliest tokens behind the first three. gpt2-older has the same network in pytorch_model.bin."""
import pathlib

import torch
from transformers import GPT2Config, GPT2LMHeadModel

here = pathlib.Path(__file__).parent / "gpt2"
torch.manual_seed(5)
config = GPT2Config(vocab_size=23, n_positions=16, n_embd=12, n_layer=2, n_head=3, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0)
model = GPT2LMHeadModel(config).eval()
for p in model.parameters():
    torch.nn.init.normal_(p, 0, 0.6)
model.save_pretrained(here)
tokens = torch.randint(0, 23, (2, 9))
out = model(tokens[:, :-1])
loss = torch.nn.functional.cross_entropy(out.logits.reshape(-1, 23), tokens[:, 1:].reshape(-1))
loss.backward()
greedy = model.generate(tokens[:1, :3], max_new_tokens=13, do_sample=False, pad_token_id=0, eos_token_id=None)


def line(values):
    return " ".join(f"{v:.9g}" for v in values)


with open(here / "answers.txt", "w", encoding="ascii") as text:
    print("tokens", line(tokens.flatten().tolist()), file=text)
    print("logits", line(out.logits.flatten().tolist()), file=text)
    print("loss", line([loss.item()]), file=text)
    for name, p in model.named_parameters():
        print("norm", name, line([p.grad.norm().item()]), file=text)
    print("greedy", line(greedy[0].tolist()), file=text)
(here / "generation_config.json").unlink(missing_ok=True)

older = here.parent / "gpt2-older"
older.mkdir(exist_ok=True)
(older / "config.json").write_bytes((here / "config.json").read_bytes())
state = model.state_dict()
for i in range(config.n_layer):  # as older versions kept them
    state[f"transformer.h.{i}.attn.bias"] = torch.tril(torch.ones(1, 1, 16, 16, dtype=torch.bool))
    state[f"transformer.h.{i}.attn.masked_bias"] = torch.tensor(-1e4)
torch.save(state, older / "pytorch_model.bin")
