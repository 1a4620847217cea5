/* eval_classes.c: how each class fared. */
#include "eval_classes.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

#define CLASSES_SHOWN 20 /* a wider table is for --json */
#define WORST_SHOWN 10

static int longest(int a, int b)
{
    return a > b ? a : b;
}

/* Columns for predicted classes: each as wide as its name and its largest number. */
static int column_width(const pc_evaluation *e, int j)
{
    int width = cli_columns(e->class_names[j]);
    for (int i = 0; i < e->classes; i++)
        width = longest(width, snprintf(NULL, 0, "%lld", (long long)e->confusion[i * e->classes + j]));
    return width;
}

static int name_width(const pc_evaluation *e, const char *corner)
{
    int width = (int)strlen(corner);
    for (int i = 0; i < e->classes; i++)
        width = longest(width, cli_columns(e->class_names[i]));
    return width;
}

static void print_right(const char *text, int width)
{
    cli_pad(stdout, cli_columns(text), width);
    cli_print_safe(stdout, text);
}

static void print_recall(double recall)
{
    if (isnan(recall))
        puts("       -");
    else
        printf("  %6.3f\n", recall);
}

static void print_confusion(const pc_evaluation *e)
{
    static const char corner[] = "true \\ predicted";
    int first = name_width(e, corner);
    print_right(corner, first);
    for (int j = 0; j < e->classes; j++) {
        fputs("  ", stdout);
        print_right(e->class_names[j], column_width(e, j));
    }
    puts("  recall");
    for (int i = 0; i < e->classes; i++) {
        print_right(e->class_names[i], first);
        for (int j = 0; j < e->classes; j++)
            printf("  %*lld", column_width(e, j), (long long)e->confusion[i * e->classes + j]);
        print_recall(e->recall[i]);
    }
}

static long long pictures_of(const pc_evaluation *e, int i)
{
    long long sum = 0;
    for (int j = 0; j < e->classes; j++)
        sum += (long long)e->confusion[i * e->classes + j];
    return sum;
}

/* The class with the smallest recall that is larger than that of `after`, or equal and behind it; -1: none. */
static int next_worst(const pc_evaluation *e, int after)
{
    int worst = -1;
    for (int i = 0; i < e->classes; i++) {
        bool behind = after < 0 || e->recall[i] > e->recall[after] || (e->recall[i] == e->recall[after] && i > after);
        if (behind && !isnan(e->recall[i]) && (worst < 0 || e->recall[i] < e->recall[worst]))
            worst = i;
    }
    return worst;
}

static void print_worst(const pc_evaluation *e)
{
    static const char corner[] = "class";
    int first = name_width(e, corner), at = -1;
    printf("the classes that fared worst, of %d (--json has them all, and what was taken for what)\n", e->classes);
    print_right(corner, first);
    puts("  pictures  recall");
    for (int i = 0; i < WORST_SHOWN && (at = next_worst(e, at)) >= 0; i++) {
        print_right(e->class_names[at], first);
        printf("  %8lld", pictures_of(e, at));
        print_recall(e->recall[at]);
    }
}

static bool is_never_named(const pc_evaluation *e, int i)
{
    return isnan(e->precision[i]) && !isnan(e->recall[i]);
}

static void print_never_named(const pc_evaluation *e)
{
    int shown = 0;
    fputs("\nno picture was taken for ", stdout);
    for (int i = 0; i < e->classes && shown < CLASSES_SHOWN; i++) {
        if (!is_never_named(e, i))
            continue;
        fputs(shown++ ? ", " : "", stdout);
        cli_print_safe(stdout, e->class_names[i]);
    }
    if (e->never_named > shown)
        printf(" and %d more", e->never_named - shown);
    printf(", although there are pictures of %s\n", e->never_named == 1 ? "it" : "them");
}

void cli_eval_classes(const pc_evaluation *e)
{
    if (e->classes <= CLASSES_SHOWN)
        print_confusion(e);
    else
        print_worst(e);
    if (e->never_named)
        print_never_named(e);
}

static void print_shares(const char *name, const double *shares, int n)
{
    printf(", \"%s\": [", name);
    for (int i = 0; i < n; i++) {
        fputs(i ? ", " : "", stdout);
        cli_json_number(stdout, shares[i]);
    }
    fputc(']', stdout);
}

void cli_eval_classes_json(const pc_evaluation *e)
{
    print_shares("recall", e->recall, e->classes);
    print_shares("precision", e->precision, e->classes);
    fputs(", \"never_predicted\": [", stdout);
    for (int i = 0, shown = 0; i < e->classes; i++)
        if (is_never_named(e, i)) {
            fputs(shown++ ? ", " : "", stdout);
            cli_json_text(stdout, e->class_names[i]);
        }
    fputc(']', stdout);
}
