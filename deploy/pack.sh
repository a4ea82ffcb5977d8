# Functions of the scripts that build packages: one tree becomes a .deb and an .rpm with the same
# scripts. They use these variables:
#
#     name version summary    of the package
#     root                    the tree
#     architecture            "all", or empty for this machine's
#     needs_deb needs_rpm     its dependencies
#     instead_of              packages in whose place it comes, separated by ", "
#     units                   of systemd: restarted by an upgrade, ended by a removal
#     kept                    files that a site edits
#     output                  directory of the packages
#
# PACKAGE_VERSION in the environment is another version, COMPRESSION=none packs at once, for trying.
version=${PACKAGE_VERSION:-$(sed -n 's/^version = "\(.*\)"$/\1/p' pyproject.toml | head -n 1)}
case ${COMPRESSION:-zstd} in
    none) compression_deb=-Znone compression_rpm=w.ufdio ;;
    *) compression_deb='-Zzstd -z9' compression_rpm=w9.zstdio ;;
esac
maintainer='walltimed maintainers <walltimed@localhost>'
description='Predicts at every submission how long a job will really run, from how long
 earlier jobs ran, and shows how accurate it is. For Slurm and PBS.'

# Commands after the files are there. Units are not started: the administrator decides when.
after_installing() {
    cat <<COMMANDS
    getent group walltimed > /dev/null || groupadd --system walltimed
    getent passwd walltimed > /dev/null || useradd --system --gid walltimed \\
        --home-dir /var/lib/walltimed --no-create-home --shell /usr/sbin/nologin walltimed
    # Who may read the accounting log of PBS: its unit names the group, and needs it to start.
    getent group pbsacct > /dev/null || groupadd --system pbsacct
    chgrp walltimed /etc/walltimed
    [ ! -e /etc/walltimed/walltimed.toml ] || chgrp walltimed /etc/walltimed/walltimed.toml
    # An import or a token may come before the first start of a unit.
    install -d -o walltimed -g walltimed -m 750 /var/lib/walltimed
    install -d -o walltimed -g walltimed -m 755 /var/cache/walltimed
    if [ -d /run/systemd/system ]; then
        systemctl daemon-reload
        systemctl try-restart $units
    fi
COMMANDS
}

# Commands before the files go, in a removal and not in an upgrade.
before_removing() {
    sed 's/^/    /' deploy/still-named
    cat <<COMMANDS
    if [ -d /run/systemd/system ]; then
        systemctl disable --now $units
    fi
    [ ! -d /opt/walltimed ] || find /opt/walltimed -name walltimed.lock -delete
COMMANDS
}

# What was compiled can be compiled again; history and settings stay.
after_removing() {
    echo '    rm -rf /var/cache/walltimed'
}

script() { # CONDITION, then the commands on standard input
    printf '#!/bin/sh\nset -e\nif %s; then\n' "$1"
    cat
    echo fi
}

pack_deb() {
    architecture_deb=${architecture:-$(dpkg --print-architecture)}
    control=$root/DEBIAN
    install -d "$control"
    for each in $kept; do echo "$each"; done > "$control/conffiles"
    cat > "$control/control" <<CONTROL
Package: $name
Version: $version
Architecture: $architecture_deb
Maintainer: $maintainer
Depends: $needs_deb, passwd
${instead_of:+Provides: $instead_of
Conflicts: $instead_of
Replaces: $instead_of
}Installed-Size: $(du -sk --exclude DEBIAN "$root" | cut -f 1)
Section: admin
Priority: optional
Description: $summary
 $description
CONTROL
    after_installing | script '[ "$1" = configure ]' > "$control/postinst"
    before_removing | script '[ "$1" = remove ]' > "$control/prerm"
    after_removing | script '[ "$1" = remove ] || [ "$1" = purge ]' > "$control/postrm"
    chmod 755 "$control/postinst" "$control/prerm" "$control/postrm"
    dpkg-deb $compression_deb --root-owner-group --build "$root" \
        "$output/${name}_${version}_$architecture_deb.deb"
    rm -r "$control"
}

pack_rpm() {
    top=$(mktemp -d)
    {
        cat <<SPEC
Name: $name
Version: $version
Release: 1
Summary: $summary
License: Apache-2.0
Packager: $maintainer
Group: System Environment/Daemons
$(for each in $needs_rpm; do echo "Requires: $each"; done)
Requires(post): shadow-utils
${instead_of:+Provides: $instead_of
Conflicts: $instead_of
}AutoReqProv: no
%define _build_id_links none
%define __os_install_post %{nil}
%define _binary_payload $compression_rpm
%description
$description
%install
mkdir -p %{buildroot}
cp -a "$root/." %{buildroot}
%files
%defattr(-, root, root)
%dir /etc/walltimed
$(for each in $kept; do echo "%config(noreplace) $each"; done)
SPEC
        # Own directories too, but not those of the system; 640 and the like stay.
        (cd "$root" && find opt/walltimed usr/share/walltimed usr/share/doc/"$name" -type d 2> /dev/null |
            sed 's|^|%dir "/|; s|$|"|')
        (cd "$root" && find . ! -type d ! -path './etc/*' |
            sed 's|^\.|"|; s|$|"|; s|^"/usr/share/doc/|%doc &|')
        echo '%post'; after_installing
        echo '%preun'; before_removing | script '[ "$1" = 0 ]' | tail -n +3
        echo '%postun'; after_removing | script '[ "$1" = 0 ]' | tail -n +3
        released=$(sed -n "s/^## \[$version\] - //p" CHANGELOG.md)
        echo '%changelog'
        echo "* $(LC_ALL=C date --date "${released:-now}" '+%a %b %d %Y') $maintainer - $version-1"
        echo '- As CHANGELOG.md says.'
    } > "$top/$name.spec"
    rpmbuild --quiet -bb --define "_topdir $top" --buildroot "$top/root" \
        --define "_rpmdir $output" --define '_rpmfilename %{NAME}-%{VERSION}-%{RELEASE}.%{ARCH}.rpm' \
        --target "$(rpm_architecture)" "$top/$name.spec" > "$top/log" 2>&1 ||
        { cat "$top/log" >&2; exit 1; }
    rm -rf "$top"
}

rpm_architecture() {
    if [ "$architecture" = all ]; then echo noarch; else uname -m; fi
}
