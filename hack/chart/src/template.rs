//! One file of the kustomization as one of the chart. Pure.

use anyhow::{Context, Result, ensure};

/// The operator's namespace in the kustomization.
const NAMESPACE: &str = "clusterwright-system";
const MARK: &str = "# chart: ";
const SKIP: &str = "# chart-skip";
const RESUME: &str = "# chart-resume";

/// The template that a file of the kustomization says. An error names the line that cannot be understood.
pub fn template(text: &str) -> Result<String> {
    let (mut out, mut skipped) = (String::new(), false);
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        match line.trim() {
            SKIP => {
                ensure!(!skipped, "line {number}: `{SKIP}` within what is skipped");
                skipped = true;
            }
            RESUME => {
                ensure!(skipped, "line {number}: `{RESUME}` without `{SKIP}`");
                skipped = false;
            }
            _ if skipped => {}
            _ => {
                out.push_str(&one_line(line));
                out.push('\n');
            }
        }
    }
    ensure!(!skipped, "`{SKIP}` without `{RESUME}`");
    Ok(out)
}

fn one_line(line: &str) -> String {
    let depth = line.len() - line.trim_start().len();
    match line.split_once(MARK) {
        Some((_, template)) => format!("{}{template}", &line[..depth]),
        None => in_release(&literal(line)),
    }
}

/// What is no template of the chart's, though it looks like one.
fn literal(line: &str) -> String {
    line.replace("{{", "{{ \"{{\" }}")
}

fn in_release(line: &str) -> String {
    line.replace(NAMESPACE, "{{ .Release.Namespace }}")
}

/// A CustomResourceDefinition as the chart has it: it stays when the release is uninstalled, and all objects with it.
pub fn definition(text: &str) -> Result<String> {
    let (before, after) = text.split_once("\nmetadata:\n").context("it has no metadata")?;
    ensure!(after.starts_with("  name: "), "its metadata begins with something else than its name");
    Ok(format!(
        "{before}\nmetadata:\n  annotations:\n    helm.sh/resource-policy: keep\n  labels:\n    \
         app.kubernetes.io/part-of: clusterwright\n{after}"
    ))
}

#[cfg(test)]
mod tests {
    use super::{definition, template};

    #[test]
    fn a_comment_takes_the_place_of_its_line_at_its_depth() {
        let check = |text: &str, expected: &str| assert_eq!(template(text).unwrap(), expected);
        check("  replicas: 2  # chart: replicas: {{ .Values.replicas }}\n", "  replicas: {{ .Values.replicas }}\n");
        check("a: 1\n  # chart: {{- if .Values.b }}\n  b: 1\n", "a: 1\n  {{- if .Values.b }}\n  b: 1\n");
        check("- a  # chart: - {{ .b }}\n", "- {{ .b }}\n");
        check("a: 1\n# chart-skip\nb: 1\n# chart-resume\nc: 1\n", "a: 1\nc: 1\n");
        check("# why\na: 1\n", "# why\na: 1\n");
    }

    #[test]
    fn the_namespace_is_the_releases_and_templates_of_others_come_out_as_they_are() {
        let check = |text: &str, expected: &str| assert_eq!(template(text).unwrap(), expected);
        check("namespace: clusterwright-system\n", "namespace: {{ .Release.Namespace }}\n");
        check("summary: '{{ $value }} of'\n", "summary: '{{ \"{{\" }} $value }} of'\n");
    }

    #[test]
    fn marks_that_do_not_match_are_refused_by_their_line() {
        let check = |text: &str, expected: &str| assert!(template(text).unwrap_err().to_string().contains(expected));
        check("a: 1\n# chart-resume\n", "line 2");
        check("# chart-skip\n# chart-skip\n", "line 2");
        check("# chart-skip\n", "without `# chart-resume`");
    }

    #[test]
    fn a_definition_stays_when_its_release_goes() {
        let text = "kind: CustomResourceDefinition\nmetadata:\n  name: hosts\nspec: {}\n";
        let said = definition(text).unwrap();
        assert!(said.contains("metadata:\n  annotations:\n    helm.sh/resource-policy: keep\n"), "{said}");
        assert!(said.ends_with("clusterwright\n  name: hosts\nspec: {}\n"), "{said}");
        assert!(definition("kind: X\nmetadata:\n  labels: {}\n").is_err());
    }
}
