"""two_inputs.py: a network of two inputs, who and what, learns how somebody will like something: each of both becomes a
row of a table, and a few layers look at the two rows. The twin of ../two_inputs.c."""
import torch
from torch import nn
from torch.nn import functional as F

USERS, ITEMS, TASTES, BATCH, STEPS = 60, 40, 4, 256, 300


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.users = nn.Embedding(USERS, 8)
        self.items = nn.Embedding(ITEMS, 8)
        self.layers = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, users, items):
        u, i = self.users(users), self.items(items)
        product = (u * i).sum(1)
        return product + self.layers(torch.cat([u, i], 1)).squeeze(1)


class World:
    """What there is to know: who likes what, by tastes that the network is not told."""

    def __init__(self, device):
        self.users = torch.randn(USERS, TASTES, device=device)
        self.items = torch.randn(ITEMS, TASTES, device=device)

    def ratings(self, users, items):
        u, i = self.users[users], self.items[items]
        return torch.tanh((u * i).sum(1))


def choose(count, device):
    return (torch.rand(BATCH, device=device) * count).long()


def error_of(net, world, device):
    users, items = choose(USERS, device), choose(ITEMS, device)
    return F.mse_loss(net(users, items), world.ratings(users, items))


def main():
    torch.manual_seed(1)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    net = Network().to(device)
    adam = torch.optim.Adam(net.parameters(), lr=0.02)
    world = World(device)
    for step in range(1, STEPS + 1):
        loss = error_of(net, world, device)
        adam.zero_grad()
        loss.backward()
        adam.step()
        if step % 100 == 0:
            print(f"step {step:3}  loss {loss.item():.3f}")
    with torch.no_grad():
        print(f"mean square error: {error_of(net, world, device).item():.3f}")


main()
