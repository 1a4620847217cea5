/* text.c: the module as PyTorch prints it. */
#include "nn/layers.h"

static void describe(const pc_module *module, int indent, pc__text *text);

static char *text_of(const pc_module *module, int indent)
{
    pc__text text = {0};
    describe(module, indent, &text);
    if (text.failed)
        pc__text_free(&text);
    return text.data;
}

/* Children of a list from number i on that are told alike; *told is what is told of them. */
static int alike(const pc_module *list, int i, int indent, char **told)
{
    int count = 1;
    *told = text_of(list->children[i].object, indent);
    for (bool same = *told; same && i + count < list->child_count; count += same) {
        char *next = text_of(list->children[i + count].object, indent);
        same = next && strcmp(*told, next) == 0;
        pc__free(next);
    }
    return count;
}

static void describe_list(const pc_module *list, int indent, pc__text *text)
{
    for (int i = 0, count = 0; i < list->child_count; i += count) {
        char *told = NULL;
        count = alike(list, i, indent + 2, &told);
        pc__text_add(text, "\n%*s(%d", indent + 2, "", i);
        if (count > 1)
            pc__text_add(text, "-%d): %d x %s", i + count - 1, count, told ? told : "");
        else
            pc__text_add(text, "): %s", told ? told : "");
        text->failed = text->failed || !told;
        pc__free(told);
    }
}

static void describe_children(const pc_module *module, int indent, pc__text *text)
{
    for (int i = 0; i < module->child_count; i++) {
        pc__text_add(text, "\n%*s(%s): ", indent + 2, "", module->children[i].name);
        describe(module->children[i].object, indent + 2, text);
    }
}

static void describe(const pc_module *module, int indent, pc__text *text)
{
    char inside[256] = "";
    if (module->type->describe)
        module->type->describe(module, inside, sizeof inside);
    pc__text_add(text, "%s(", module->type->name);
    if (inside[0] && module->child_count)
        pc__text_add(text, "\n%*s", indent + 2, "");
    pc__text_add(text, "%s", inside);
    if (module->type == &pc__module_list_class)
        describe_list(module, indent, text);
    else
        describe_children(module, indent, text);
    if (module->child_count)
        pc__text_add(text, "\n%*s", indent, "");
    pc__text_add(text, ")");
}

char *pc_module_text(const pc_module *module)
{
    PC__NEED_OR(NULL, module);
    return text_of(module, 0);
}
