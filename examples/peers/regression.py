"""regression.py: numbers from numbers, with a schedule, clipped gradients and early stopping. The twin of
../regression.c."""
import copy
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

SAMPLES, INPUTS = 2000, 8


def measure(net, loader):
    net.eval()
    loss = error = count = 0
    with torch.no_grad():
        for x, y in loader:
            out = net(x)
            loss += nn.functional.mse_loss(out, y).item() * len(x)
            error += nn.functional.l1_loss(out, y).item() * len(x)
            count += len(x)
    return loss / count, error / count


torch.manual_seed(1)
x = torch.randn(SAMPLES, INPUTS)  # y = sin(a) + b c - |d| + noise
a, b, c, d = (x[:, i : i + 1] for i in range(4))
y = torch.sin(a) + b * c - d.abs() + 0.1 * torch.randn(SAMPLES, 1)
training, validation = random_split(TensorDataset(x, y), [0.8, 0.2])
train = DataLoader(training, batch_size=64, shuffle=True)
test = DataLoader(validation, batch_size=64)

net = nn.Sequential(nn.Linear(INPUTS, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
adam = torch.optim.AdamW(net.parameters(), lr=3e-3)
epochs, patience = 100, 15
steps = epochs * len(train)
warmup = torch.optim.lr_scheduler.LinearLR(adam, 1 / 51, 1, 50)
cosine = torch.optim.lr_scheduler.CosineAnnealingLR(adam, steps - 50)
schedule = torch.optim.lr_scheduler.SequentialLR(adam, [warmup, cosine], [50])

best, best_epoch, kept = float("inf"), 0, None
for epoch in range(1, epochs + 1):
    net.train()
    total = count = 0
    for bx, by in train:
        adam.zero_grad()
        loss = nn.functional.mse_loss(net(bx), by)
        if not torch.isfinite(loss):
            raise SystemExit(f"epoch {epoch}: the loss is {loss.item()}")
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        adam.step()
        schedule.step()
        total += loss.item() * len(bx)
        count += len(bx)
    test_loss, error = measure(net, test)
    if epoch % 10 == 0:
        print(f"epoch {epoch:3}  loss {total / count:.4f}  test loss {test_loss:.4f}  mae {error:.4f}")
    if test_loss < best:
        best, best_epoch, kept = test_loss, epoch, copy.deepcopy(net.state_dict())
    elif epoch - best_epoch >= patience:
        break
net.load_state_dict(kept)
test_loss, error = measure(net, test)
print(f"kept: test loss {test_loss:.4f}  mae {error:.4f}")
