speak(preferred());
