"""residual_network.py: a network of blocks of one's own, which have their layers by name, learns whether the stripes of a
noisy picture go across or down. The twin of ../residual_network.c."""
import torch
from torch import nn
from torch.nn import functional as F

BATCH, SIZE, STEPS = 32, 16, 40


def conv(i, o, kernel, stride):
    return nn.Conv2d(i, o, kernel, stride=stride, padding=kernel // 2, bias=False)


class Block(nn.Module):
    def __init__(self, i, o, stride):
        super().__init__()
        self.conv1 = conv(i, o, 3, stride)
        self.bn1 = nn.BatchNorm2d(o)
        self.conv2 = conv(o, o, 3, 1)
        self.bn2 = nn.BatchNorm2d(o)
        self.shortcut = nn.Sequential(conv(i, o, 1, stride), nn.BatchNorm2d(o))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        return F.relu(y + self.shortcut(x))


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(conv(1, 8, 3, 1), nn.BatchNorm2d(8))
        self.blocks = nn.Sequential(Block(8, 8, 1), Block(8, 16, 2), Block(16, 32, 2))
        self.head = nn.Linear(32, 2)

    def forward(self, x):
        x = self.blocks(self.stem(x))
        return self.head(x.mean((2, 3)))


def draw(device):
    """Pictures [BATCH, 1, SIZE, SIZE] and their labels [BATCH]."""
    labels = (torch.rand(BATCH, device=device) > 0.5).long()
    down = torch.sin(torch.arange(SIZE, device=device)).expand(BATCH, 1, SIZE, SIZE)
    stripes = torch.where(labels.reshape(BATCH, 1, 1, 1) > 0, down.transpose(2, 3), down)
    return stripes + torch.randn(BATCH, 1, SIZE, SIZE, device=device), labels


def train(net, sgd, device):
    for step in range(1, STEPS + 1):
        x, labels = draw(device)
        loss = F.cross_entropy(net(x), labels)
        sgd.zero_grad()
        loss.backward()
        sgd.step()
        if step % 10 == 0:
            print(f"step {step:2}  loss {loss.item():.3f}")


def main():
    torch.manual_seed(1)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    net = Network().to(device)
    sgd = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    print(sum(p.numel() for p in net.parameters()), "parameters")
    train(net, sgd, device)
    net.eval()  # by the running statistics
    with torch.no_grad():
        x, labels = draw(device)
        right = net(x).argmax(1) == labels
    print(f"right on new pictures: {100 * right.float().mean().item():.0f}%")


main()
